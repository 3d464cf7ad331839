"""Multi-head self-attention and the residual block around it."""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers import kernels
from albert_tf.layers.basic import (
    Affine,
    LayerNorm,
    SeededDropout,
    build_children,
    dense,
    fold_in,
)
from albert_tf.layers.packing import PackedLayout, PaddedLayout

# Added to the logits of masked keys, as in the reference; small enough for float16.
_MASKED = -10000.0


def attention_bias(input_mask: tf.Tensor) -> tf.Tensor:
    """int32 [B, S], 1 for real tokens -> float32 [B, 1, 1, S], added to attention logits."""
    return (1.0 - tf.cast(input_mask[:, None, None, :], tf.float32)) * _MASKED


def attention_probs(query: tf.Tensor, key: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Softmax in float32; the result has the query's precision.

    query: float [B, N, Q, D]; key: [B, N, S, D]; bias: float32 [B, 1, 1, S]; returns [B, N, Q, S].
    """
    logits = tf.matmul(query, key, transpose_b=True)
    return tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32) + bias), query.dtype)


def attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """`attention_probs` times value, [B, N, S, D], for training; returns [B, N, Q, D]."""

    @tf.custom_gradient
    def attended(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor):
        probs = kernels.masked_softmax(tf.matmul(query, key, transpose_b=True), bias)
        context = tf.matmul(probs, value)

        def gradient(upstream: tf.Tensor):
            d_probs = tf.matmul(upstream, value, transpose_b=True)
            d_logits = kernels.softmax_gradient(probs, d_probs, context, upstream)
            return (
                tf.matmul(d_logits, key),
                tf.matmul(d_logits, query, transpose_a=True),
                tf.matmul(probs, upstream, transpose_a=True),
            )

        return context, gradient

    return attended(query, key, value)


class AttentionWeights(NamedTuple):
    """The weights of an AttentionBlock as tensors; queries come out scaled by 1 / sqrt(D)."""

    query_key_value: Affine
    output: Affine


class AttentionBlock(keras.layers.Layer):
    """LayerNorm(x + SeededDropout(Dense(SelfAttention(x)))): the attention half of a layer."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        # Three layers, because checkpoints and LAMB's trust ratios want three variables; one matmul
        # uses them.
        self.query = dense(config.hidden_size, config, name="query")
        self.key = dense(config.hidden_size, config, name="key")
        self.value = dense(config.hidden_size, config, name="value")
        self.output_dense = dense(config.hidden_size, config, name="output")
        self.probs_dropout = SeededDropout(
            config.attention_probs_dropout_prob, name="probs_dropout"
        )
        self.output_dropout = SeededDropout(config.hidden_dropout_prob, name="output_dropout")
        self.layer_norm = LayerNorm(config, name="layer_norm")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        hidden = self._config.hidden_size
        build_children(
            *((part, hidden) for part in (self.query, self.key, self.value, self.output_dense))
        )
        build_children((self.layer_norm, hidden))
        super().build(input_shape)

    def weights_once(self) -> AttentionWeights:
        """What `call` needs; made once for all layers that share this block."""
        query, scale = Affine.of(self.query), 1.0 / math.sqrt(self._config.head_size)
        query = Affine(query.kernel * scale, query.bias * scale)
        parts = (query, Affine.of(self.key), Affine.of(self.value))
        kernel = tf.concat([part.kernel for part in parts], axis=1)  # [H, 3H]
        bias = tf.concat([part.bias for part in parts], axis=0)  # [3H]
        return AttentionWeights(Affine(kernel, bias), Affine.of(self.output_dense))

    def call(
        self,
        rows: tf.Tensor,
        weights: AttentionWeights,
        bias: tf.Tensor,
        layout: PaddedLayout | PackedLayout,
        positions: tf.Tensor | None = None,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """One application of the block.

        Args:
          rows: float [T, H].
          weights: what `weights_once` returned.
          bias: float32 [B, 1, 1, S], see `attention_bias`.
          layout: of the rows.
          positions: int32 [B, P]: only these positions are computed; None: all.

        Returns:
          float [T, H], or [B * P, H] for positions.
        """
        rows, output = self.branch(rows, weights, bias, layout, positions, training, seed)
        return self.layer_norm(rows, output, training=training)

    def branch(
        self,
        rows: tf.Tensor,
        weights: AttentionWeights,
        bias: tf.Tensor,
        layout: PaddedLayout | PackedLayout,
        positions: tf.Tensor | None = None,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """What `call` adds up and normalizes: x and its attention, both [T, H] or [B * P, H]."""
        if positions is None:
            projected = layout.to_padded(weights.query_key_value(rows, training))
            query, key, value = self._split_heads(projected, 3)
        else:
            for_query, for_key_value = weights.query_key_value.split(self._config.hidden_size)
            key, value = self._split_heads(layout.to_padded(for_key_value(rows, training)), 2)
            rows = layout.rows_at(rows, positions)  # [B * P, H]
            chosen = tf.reshape(
                for_query(rows, training), [*_shape(positions), self._config.hidden_size]
            )
            (query,) = self._split_heads(chosen, 1)  # [B, N, P, D]
        if training and not self.probs_dropout.rate:
            context = attend(query, key, value, bias)  # [B, N, S or P, D]
        else:
            probs = attention_probs(query, key, bias)  # [B, N, S or P, S]
            probs = self.probs_dropout(probs, training=training, seed=fold_in(seed, 0))
            context = tf.matmul(probs, value)
        context = tf.transpose(context, [0, 2, 1, 3])  # [B, S or P, N, D]
        context = tf.reshape(context, [*_shape(context)[:2], self._config.hidden_size])
        context = (
            layout.to_rows(context)
            if positions is None
            else tf.reshape(context, [-1, self._config.hidden_size])
        )
        output = weights.output(context, training)
        return rows, self.output_dropout(output, training=training, seed=fold_in(seed, 1))

    def _split_heads(self, projected: tf.Tensor, parts: int) -> list[tf.Tensor]:
        """[B, S, parts * H] -> parts tensors [B, N, S, D]."""
        heads, size = self._config.num_attention_heads, self._config.head_size
        split = tf.reshape(projected, [*_shape(projected)[:2], parts, heads, size])
        return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]))


def _shape(tensor: tf.Tensor) -> list[int | tf.Tensor]:
    """Static sizes where they are known."""
    dynamic = tf.shape(tensor)
    return [
        dynamic[axis] if size is None else size for axis, size in enumerate(tensor.shape.as_list())
    ]
