"""Models that answer with labels, a choice, a number or a vector for a text."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.operations import Seed, fold_in
from albert_tf.models.heads import OutputHead
from albert_tf.models.inputs import complete_inputs, have_several_texts, single_texts
from albert_tf.models.task_model import TaskModel, Tensors


class _ClassesModel(TaskModel):
    """A model with one head: dropout, then a dense layer to `num_classes` logits, C."""

    settings: tuple[str, ...] = ("num_classes", "dropout_rate")
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

    With one class it is a regression, and the logit is its answer. With `multi_label`, a text has
    any number of the C labels: a label's probability is the sigmoid of its logit.
    """

    default_name, saved_as = "classifier", "classification"
    settings = (*_ClassesModel.settings, "multi_label")

    def __init__(
        self,
        config: AlbertConfig,
        num_classes: int,
        dropout_rate: float = 0.1,
        multi_label: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(config, num_classes, dropout_rate, **kwargs)
        self.multi_label = multi_label


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
        # Each choice is a text of its own with one logit; only the loss compares them.
        flat, shape = single_texts(inputs)
        pooled = self.pooled_output(flat, training, fold_in(seed, 0))
        logits = self.classification(pooled, training=training, seed=fold_in(seed, 1))
        return tf.reshape(logits, shape)


@keras.utils.register_keras_serializable("albert_tf")
class AlbertSentenceEncoder(TaskModel):
    """A vector for a text. Outputs, a dict of float [B, H]: `mean_output`, the mean over real
    tokens, and `pooled_output`; float [B, C, H] for inputs int32 [B, C, S], several texts a row.
    """

    default_name, saved_as = "sentence_encoder", "sentence_embedding"

    def call(self, inputs: Tensors, training: bool = False, seed: Seed = None) -> Tensors:
        if have_several_texts(inputs):
            flat, shape = single_texts(inputs)
            vectors = self.call(flat, training, seed).items()  # [B * C, H]
            return {name: tf.reshape(each, [*shape, each.shape[-1]]) for name, each in vectors}
        inputs = complete_inputs(inputs)
        outputs = self.encoder(inputs, training=training, seed=seed)
        hidden = outputs["sequence_output"]
        # In float32, since a sum over S in bfloat16 would lose precision; a text with only padding
        # gets zeros, not a division by zero.
        weights = tf.cast(inputs["input_mask"], tf.float32)  # [B, S]
        weights /= tf.maximum(tf.reduce_sum(weights, axis=1, keepdims=True), 1.0)
        mean = tf.linalg.matvec(tf.cast(hidden, tf.float32), weights, transpose_a=True)
        mean = tf.cast(mean, hidden.dtype)
        return {"mean_output": mean, "pooled_output": outputs["pooled_output"]}
