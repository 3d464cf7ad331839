"""The heads on an encoder: the masked language model, and dropout with a dense layer for the rest.

Logits are float32 whatever the precision of the computation, since losses and scores need it.
"""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.basic import (
    LayerNorm,
    SeededDropout,
    SizedLayer,
    build_children,
    dense_layer,
    initializer,
)
from albert_tf.layers.operations import ACTIVATIONS, Seed


class MaskedLMHead(SizedLayer):
    """Predicts the subwords at masked positions with the encoder's word embedding table, or with a
    table of its own if the configuration's tie_word_embeddings is False.
    """

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.vocab_size, **kwargs)
        self._activation = ACTIVATIONS[config.hidden_act]
        self.transform = dense_layer(config.embedding_size, config, name="transform")
        self.layer_norm = LayerNorm(config, name="layer_norm")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        build_children(self._config.hidden_size, self.transform)
        build_children(self._config.embedding_size, self.layer_norm)
        # float32 in any precision, because it is added to float32 logits.
        self.output_bias = self.add_weight(
            "output_bias", [self._width], tf.float32, "zeros", experimental_autocast=False
        )
        if not self._config.tie_word_embeddings:
            shape, normal = [self._width, self._config.embedding_size], initializer(self._config)
            self.output_embeddings = self.add_weight("output_embeddings", shape, initializer=normal)
        super().build(input_shape)

    def call(self, hidden: tf.Tensor, word_embeddings: tf.Tensor) -> tf.Tensor:
        """Sequence output at masked positions, float [B, P, H], and the encoder's table float
        [V, E] -> float32 [B, P, V].
        """
        shape = tf.shape(hidden)
        # The embedding in reverse: H -> E, activation, layer norm, and the product with the word
        # embedding table [V, E]. V logits per position are many (30,000 where H is 768), so only
        # masked positions get them.
        rows = tf.reshape(hidden, [-1, self._config.hidden_size])  # [B * P, H]
        rows = self.layer_norm(self._activation(self.transform(rows)))  # [B * P, E]
        table = word_embeddings if self._config.tie_word_embeddings else self.output_embeddings
        logits = tf.matmul(rows, tf.cast(table, rows.dtype), transpose_b=True)
        logits = tf.reshape(logits, [shape[0], shape[1], self._config.vocab_size])
        return tf.cast(logits, tf.float32) + self.output_bias


class OutputHead(SizedLayer):
    """The head of most tasks: dropout and a dense layer to `units` logits."""

    def __init__(
        self, config: AlbertConfig, units: int, dropout_rate: float = 0.0, **kwargs
    ) -> None:
        super().__init__(config, units, **kwargs)
        self.dropout = SeededDropout(dropout_rate, name="dropout")
        self.logits = dense_layer(units, config, name="logits")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self._leading_axes = tuple(input_shape[:-1])
        build_children(self._config.hidden_size, self.logits)
        super().build(input_shape)

    def call(self, hidden: tf.Tensor, training: bool = False, seed: Seed = None) -> tf.Tensor:
        """float [..., H] -> float32 [..., units]."""
        dropped = self.dropout(hidden, training=training, seed=seed)
        return tf.cast(self.logits(dropped), tf.float32)
