"""Multi-head self-attention and the residual block around it."""

from __future__ import annotations

import math

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.basic import Dropout, LayerNorm, build_children, dense, fold_in
from albert_tf.layers.packing import PaddedLayout

# Added to the logits of masked keys, as in the reference; small enough for float16.
_MASKED = -10000.0


def attention_bias(input_mask: tf.Tensor) -> tf.Tensor:
    """int32 [B, S], 1 for real tokens -> float32 [B, 1, 1, S], added to attention logits."""
    return (1.0 - tf.cast(input_mask[:, None, None, :], tf.float32)) * _MASKED


class AttentionBlock(keras.layers.Layer):
    """LayerNorm(x + Dropout(Dense(SelfAttention(x)))): the attention half of a layer."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        # Three layers, because checkpoints and LAMB's trust ratios want three variables; one matmul
        # uses them.
        self.query = dense(config.hidden_size, config, name="query")
        self.key = dense(config.hidden_size, config, name="key")
        self.value = dense(config.hidden_size, config, name="value")
        self.output_dense = dense(config.hidden_size, config, name="output")
        self.probs_dropout = Dropout(config.attention_probs_dropout_prob, name="probs_dropout")
        self.output_dropout = Dropout(config.hidden_dropout_prob, name="output_dropout")
        self.layer_norm = LayerNorm(config, name="layer_norm")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        hidden = self._config.hidden_size
        build_children(
            *((part, hidden) for part in (self.query, self.key, self.value, self.output_dense))
        )
        build_children((self.layer_norm, hidden))
        super().build(input_shape)

    def call(
        self,
        rows: tf.Tensor,
        bias: tf.Tensor,
        layout: PaddedLayout,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """rows: float [T, H]; bias: float32 [B, 1, 1, S]; returns float [T, H]."""
        query, key, value = self._project(rows, layout)
        logits = tf.matmul(query, key, transpose_b=True)  # [B, N, S, S]
        logits = tf.cast(logits, tf.float32) * (1.0 / math.sqrt(self._config.head_size)) + bias
        probs = tf.cast(tf.nn.softmax(logits), value.dtype)
        probs = self.probs_dropout(probs, training=training, seed=fold_in(seed, 0))
        context = tf.transpose(tf.matmul(probs, value), [0, 2, 1, 3])  # [B, S, N, D]
        context = tf.reshape(context, [tf.shape(rows)[0], self._config.hidden_size])  # [T, H]
        output = self.output_dropout(
            self.output_dense(context), training=training, seed=fold_in(seed, 1)
        )
        return self.layer_norm(rows + output)

    def _project(
        self, rows: tf.Tensor, layout: PaddedLayout
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """[T, H] -> queries, keys and values, each [B, N, S, D]."""
        parts = (self.query, self.key, self.value)
        kernel = tf.concat([part.kernel for part in parts], axis=1)  # [H, 3H]
        biases = tf.concat([part.bias for part in parts], axis=0)  # [3H]
        projected = layout.to_padded(tf.nn.bias_add(tf.matmul(rows, kernel), biases))  # [B, S, 3H]
        heads, size = self._config.num_attention_heads, self._config.head_size
        batch, sequence = tf.shape(projected)[0], tf.shape(projected)[1]
        split = tf.reshape(projected, [batch, sequence, 3, heads, size])
        return tuple(tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4])))  # 3 x [B, N, S, D]
