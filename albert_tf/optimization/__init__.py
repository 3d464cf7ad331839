"""LAMB and AdamW as google-research/albert has them, and the learning rate schedule."""

from albert_tf.optimization.adamw import AdamW
from albert_tf.optimization.lamb import LAMB
from albert_tf.optimization.schedules import WarmupPolynomialDecay

__all__ = ["LAMB", "AdamW", "WarmupPolynomialDecay"]
