"""ALBERT for TensorFlow 2: configurations, Keras models, checkpoints and training."""

from albert_tf.keras_compat import keras  # isort: skip  Chooses Keras before anything imports TensorFlow.

from albert_tf.config import AlbertConfig
from albert_tf.encoder import AlbertEncoder
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from albert_tf.presets import PRESETS, get_preset

__all__ = [
    "PRESETS",
    "AlbertClassifier",
    "AlbertConfig",
    "AlbertEncoder",
    "AlbertPretrainer",
    "get_preset",
    "keras",
]
