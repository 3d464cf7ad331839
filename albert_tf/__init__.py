"""ALBERT for TensorFlow 2: configurations, Keras models, checkpoints and training."""

from albert_tf.keras_compat import keras  # isort: skip  Chooses Keras before anything imports TensorFlow.

from albert_tf.config import AlbertConfig
from albert_tf.encoder import AlbertEncoder
from albert_tf.models import (
    AlbertClassifier,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertSentenceEncoder,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
    AlbertTokenClassifier,
)
from albert_tf.presets import PRESETS, get_preset
from albert_tf.pretrained import from_preset, preset_vocabulary

__all__ = [
    "PRESETS",
    "AlbertClassifier",
    "AlbertConfig",
    "AlbertEncoder",
    "AlbertMultipleChoice",
    "AlbertPretrainer",
    "AlbertSentenceEncoder",
    "AlbertSpanLabeler",
    "AlbertSpanLabelerV2",
    "AlbertTokenClassifier",
    "from_preset",
    "get_preset",
    "keras",
    "preset_vocabulary",
]
