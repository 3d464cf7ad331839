"""Encoder and heads put together, one Keras model for each task.

All take the inputs of AlbertEncoder, and some of them more. Logits are float32.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.base_model import AlbertModel
from albert_tf.config import AlbertConfig
from albert_tf.encoder import AlbertEncoder
from albert_tf.heads import MaskedLMHead, OutputHead
from albert_tf.inputs import complete_inputs
from albert_tf.keras_compat import keras, policy_scope
from albert_tf.layers.operations import Seed, fold_in

Tensors = dict[str, tf.Tensor]


class TaskModel(AlbertModel):
    """An encoder with heads.

    Attributes:
      default_name: of the Keras model.
      settings: arguments of the constructor, and attributes, that `get_config` has beside those
        of every model.
    """

    default_name: str
    settings: tuple[str, ...] = ()

    def __init__(self, config: AlbertConfig, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(config, name=name or self.default_name, **kwargs)
        self.encoder = AlbertEncoder(self.config, self.packed, dtype=self.dtype_policy)
        self.built = True

    def new_head(
        self, head_class: type, *arguments: Any, name: str, per_token: bool = False
    ) -> keras.layers.Layer:
        """A head of the model's configuration and precision, with its variables; for hidden states
        float [B, H], or for those of each token, float [B, S, H].
        """
        with policy_scope(self.dtype_policy):
            head = head_class(self.config, *arguments, name=name)
        leading_axes = (None, None) if per_token else (None,)
        with tf.name_scope(f"{name}/"):  # Absolute: checkpoints know no other name.
            head.build((*leading_axes, self.config.hidden_size))
        return head

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{name: getattr(self, name) for name in self.settings}}

    def pooled_output(self, inputs: Tensors, training: bool, seed: Seed) -> tf.Tensor:
        """float [B, H]; nothing else is computed of the last layer."""
        inputs = complete_inputs(inputs)
        first = tf.zeros_like(inputs["input_mask"][:, :1])  # [B, 1]
        return self.encoder.pooler(self.encoder.hidden_at(inputs, first, training, seed)[:, 0])

    def sequence_output(self, inputs: Tensors, training: bool, seed: Seed) -> tf.Tensor:
        """float [B, S, H]."""
        return self.encoder(inputs, training=training, seed=seed)["sequence_output"]


@keras.utils.register_keras_serializable("albert_tf")
class AlbertPretrainer(TaskModel):
    """Masked language model and sentence order (or next sentence), for pre-training.

    Further input: `masked_lm_positions` int32 [B, P].
    Outputs, a dict: `masked_lm_logits` float32 [B, P, V]; `sentence_order_logits` float32 [B, 2],
    class 0 for segments in order and 1 for swapped (SOP) or random ones (NSP); `pooled_output`
    float [B, H].
    """

    default_name, saved_as = "pretrainer", "pretraining"

    def __init__(self, config: AlbertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.masked_lm = self.new_head(MaskedLMHead, name="masked_lm", per_token=True)
        self.sentence_order = self.new_head(OutputHead, 2, name="sentence_order")

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        inputs = complete_inputs(inputs, also=("masked_lm_positions",))
        read = tf.pad(inputs["masked_lm_positions"], [[0, 0], [1, 0]])  # [B, 1 + P]: 0 is pooled.
        hidden = self.encoder.hidden_at(inputs, read, training=training, seed=seed)
        pooled = self.encoder.pooler(hidden[:, 0])
        words = self.encoder.embeddings.word_embeddings
        return {
            "masked_lm_logits": self.masked_lm(hidden[:, 1:], words),
            "sentence_order_logits": self.sentence_order(pooled),
            "pooled_output": pooled,
        }


class _ClassesModel(TaskModel):
    """A model whose one head is a dense layer to `num_classes` logits, C, after dropout."""

    settings = ("num_classes", "dropout_rate")
    per_token = False

    def __init__(
        self, config: AlbertConfig, num_classes: int, dropout_rate: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        self.num_classes, self.dropout_rate = num_classes, dropout_rate
        self.classification = self.new_head(
            OutputHead, num_classes, dropout_rate, name="classification", per_token=self.per_token
        )

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> tf.Tensor:
        read = self.sequence_output if self.per_token else self.pooled_output
        hidden = read(inputs, training, fold_in(seed, 0))
        return self.classification(hidden, training=training, seed=fold_in(seed, 1))


@keras.utils.register_keras_serializable("albert_tf")
class AlbertClassifier(_ClassesModel):
    """Sentence or sentence-pair classification: logits float32 [B, C] from the pooled output.

    With one class it is a regression, and the logit its answer.
    """

    default_name, saved_as = "classifier", "classification"


@keras.utils.register_keras_serializable("albert_tf")
class AlbertTokenClassifier(_ClassesModel):
    """A label for each token: logits float32 [B, S, C]."""

    default_name, saved_as = "token_classifier", "token_classification"
    per_token = True


@keras.utils.register_keras_serializable("albert_tf")
class AlbertMultipleChoice(TaskModel):
    """The choice of one of C texts (RACE): inputs int32 [B, C, S], logits float32 [B, C]."""

    default_name = saved_as = "multiple_choice"
    settings = ("dropout_rate",)

    def __init__(self, config: AlbertConfig, dropout_rate: float = 0.1, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.dropout_rate = dropout_rate
        self.classification = self.new_head(OutputHead, 1, dropout_rate, name="classification")

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> tf.Tensor:
        inputs = complete_inputs(inputs, rank=3)
        shape = tf.shape(inputs["input_mask"])
        names = ("input_word_ids", "input_mask", "input_type_ids")
        flat = {name: tf.reshape(inputs[name], [-1, shape[2]]) for name in names}  # [B * C, S]
        pooled = self.pooled_output(flat, training, fold_in(seed, 0))
        logits = self.classification(pooled, training=training, seed=fold_in(seed, 1))
        return tf.reshape(logits, shape[:2])


@keras.utils.register_keras_serializable("albert_tf")
class AlbertSentenceEncoder(TaskModel):
    """A vector for a text. Outputs, a dict of float [B, H]: `mean_output`, the mean over real
    tokens, and `pooled_output`.
    """

    default_name, saved_as = "sentence_encoder", "sentence_embedding"

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        inputs = complete_inputs(inputs)
        outputs = self.encoder(inputs, training=training, seed=seed)
        hidden = outputs["sequence_output"]
        weights = tf.cast(inputs["input_mask"], tf.float32)  # [B, S]
        weights /= tf.maximum(tf.reduce_sum(weights, axis=1, keepdims=True), 1.0)
        mean = tf.linalg.matvec(tf.cast(hidden, tf.float32), weights, transpose_a=True)
        return {
            "mean_output": tf.cast(mean, hidden.dtype),
            "pooled_output": outputs["pooled_output"],
        }
