"""The base class of models for a task: an encoder with heads."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras, policy_scope
from albert_tf.layers.operations import Seed
from albert_tf.models.base import AlbertModel
from albert_tf.models.encoder import AlbertEncoder
from albert_tf.models.inputs import complete_inputs

Tensors = dict[str, tf.Tensor]


class TaskModel(AlbertModel):
    """An encoder with heads."""

    default_name: str  # The name of the Keras model by default.

    def __init__(self, config: AlbertConfig, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(config, name=name or self.default_name, **kwargs)
        self.encoder = AlbertEncoder(self.config, self.packed, dtype=self.dtype_policy)
        self.built = True

    def new_head(
        self, head_class: type, *arguments: Any, name: str, per_token: bool = False
    ) -> keras.layers.Layer:
        """A built head with the model's configuration and precision, for hidden states float
        [B, H], or [B, S, H] with `per_token`.
        """
        with policy_scope(self.dtype_policy):
            head = head_class(self.config, *arguments, name=name)
        leading_axes = (None, None) if per_token else (None,)
        with tf.name_scope(f"{name}/"):  # Absolute, as in checkpoints.
            head.build((*leading_axes, self.config.hidden_size))
        return head

    def pooled_output(self, inputs: Tensors, training: bool, seed: Seed) -> tf.Tensor:
        """float [B, H]; the last layer computes only position 0."""
        inputs = complete_inputs(inputs)
        first = tf.zeros_like(inputs["input_mask"][:, :1])  # [B, 1]
        return self.encoder.pooler(self.encoder.hidden_at(inputs, first, training, seed)[:, 0])

    def sequence_output(self, inputs: Tensors, training: bool, seed: Seed) -> tf.Tensor:
        """float [B, S, H]."""
        return self.encoder(inputs, training=training, seed=seed)["sequence_output"]
