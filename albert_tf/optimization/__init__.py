"""LAMB and AdamW as google-research/albert has them, Muon, and the learning rate schedule."""

from albert_tf.optimization.addons import addons_lamb
from albert_tf.optimization.optimizers import LAMB, AdamW, Muon, layerwise_factors
from albert_tf.optimization.schedules import (
    Recipe,
    WarmupConstantDecay,
    WarmupPolynomialDecay,
    decay_start,
    scale_recipe,
)

__all__ = [
    "LAMB",
    "AdamW",
    "Muon",
    "Recipe",
    "WarmupConstantDecay",
    "WarmupPolynomialDecay",
    "addons_lamb",
    "decay_start",
    "layerwise_factors",
    "scale_recipe",
]
