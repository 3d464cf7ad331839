"""The Keras models: the encoder, and one for each task, which is the encoder with heads.

All take the inputs of AlbertEncoder, and some of them more. Logits are float32.
"""

from albert_tf.models.base import AlbertModel
from albert_tf.models.classifiers import (
    AlbertClassifier,
    AlbertMultipleChoice,
    AlbertSentenceEncoder,
    AlbertTokenClassifier,
)
from albert_tf.models.encoder import AlbertEncoder
from albert_tf.models.pretrainer import AlbertPretrainer
from albert_tf.models.recurring_spans import AlbertSpanPretrainer
from albert_tf.models.replaced_tokens import AlbertReplacedTokenDetector, ReplacedTokenPretrainer
from albert_tf.models.spans import AlbertSpanLabeler, AlbertSpanLabelerV2
from albert_tf.models.task_model import TaskModel

__all__ = [
    "AlbertClassifier",
    "AlbertEncoder",
    "AlbertModel",
    "AlbertMultipleChoice",
    "AlbertPretrainer",
    "AlbertReplacedTokenDetector",
    "AlbertSentenceEncoder",
    "AlbertSpanLabeler",
    "AlbertSpanLabelerV2",
    "AlbertSpanPretrainer",
    "AlbertTokenClassifier",
    "ReplacedTokenPretrainer",
    "TaskModel",
]
