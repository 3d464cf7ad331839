"""Multi-head self-attention."""

from __future__ import annotations

import math

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.basic import LayerNorm, SeededDropout, SizedLayer, build_children, dense_layer
from albert_tf.layers.blocks import BlockWeights
from albert_tf.layers.forward_pass import ForwardPass
from albert_tf.layers.operations import DenseWeights, Seed, fold_in


class AttentionBlock(SizedLayer):
    """SeededDropout(Dense(SelfAttention(x))), and the normalization after it."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.hidden_size, **kwargs)
        # Three layers, because checkpoints and LAMB's trust ratios need three variables;
        # `read_weights` joins them for a single matmul.
        self.query = dense_layer(config.hidden_size, config, name="query")
        self.key = dense_layer(config.hidden_size, config, name="key")
        self.value = dense_layer(config.hidden_size, config, name="value")
        self.output_dense = dense_layer(config.hidden_size, config, name="output")
        probs_rate = config.attention_probs_dropout_prob
        self.probs_dropout = SeededDropout(probs_rate, name="probs_dropout")
        self.output_dropout = SeededDropout(config.hidden_dropout_prob, name="output_dropout")
        self.layer_norm = LayerNorm(config, name="layer_norm")
        # If activations are recomputed, such a block needs a seed, to draw the same masks again.
        self.drops = bool(self.probs_dropout.rate or self.output_dropout.rate)

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        dense_layers = (self.query, self.key, self.value, self.output_dense)
        build_children(self._config.hidden_size, *dense_layers, self.layer_norm)
        super().build(input_shape)

    def read_weights(self) -> BlockWeights:
        """The weights for `call`: those of queries (scaled by 1 / sqrt(D)), keys and values joined;
        then those of the output.
        """
        query, key, value = map(DenseWeights.of, (self.query, self.key, self.value))
        # Scaling the weights is cheaper than scaling the logits [B, N, S, S], which are more
        # numbers in all but the smallest batches.
        scale = 1.0 / math.sqrt(self._config.head_size)
        kernel = tf.concat([query.kernel * scale, key.kernel, value.kernel], axis=1)  # [H, 3H]
        bias = tf.concat([query.bias * scale, key.bias, value.bias], axis=0)  # [3H]
        return DenseWeights(kernel, bias), DenseWeights.of(self.output_dense)

    def call(
        self,
        x: tf.Tensor,
        weights: BlockWeights,
        forward: ForwardPass,
        positions: tf.Tensor | None = None,
        seed: Seed = None,
    ) -> tf.Tensor:
        """float [T, H] -> [T, H], or [B * P, H]: tokens, or only those at positions, attend to
        all tokens of their sequence.
        """
        # The block begins and ends with rows; only between the two lines that call the layout do
        # tensors have the axes B and S.
        for_query_key_value, for_output = weights
        query, key, value = self._query_key_value(x, for_query_key_value, forward, positions)

        # A function, so that each form of `attend` can call it where it has the probabilities. Each
        # mask has its own seed, because two masks from one seed would be correlated.
        def drop(probs: tf.Tensor) -> tf.Tensor:
            return self.probs_dropout(probs, training=True, seed=fold_in(seed, 0))

        dropout = drop if forward.training and self.probs_dropout.rate else None
        context = forward.operations.attend(query, key, value, forward.bias, dropout)
        context = tf.transpose(context, [0, 2, 1, 3])  # [B, S or P, N, D]
        # Chosen positions are already rows, P for each sequence. Otherwise, all tokens are
        # converted back to the layout's rows, which leave out what attention computed at padding.
        if positions is None:
            context = forward.layout.to_rows(context)  # [T, N, D]
        rows = tf.reshape(context, [-1, self._config.hidden_size])  # [T or B * P, H]
        output = forward.operations.dense(rows, for_output)
        return self.output_dropout(output, training=forward.training, seed=fold_in(seed, 1))

    def _query_key_value(
        self, x: tf.Tensor, weights: DenseWeights, forward: ForwardPass, positions: tf.Tensor | None
    ) -> list[tf.Tensor]:
        """Queries [B, N, S or P, D]; keys and values [B, N, S, D]."""
        project, layout = forward.operations.dense, forward.layout
        if positions is None:
            return self._split_heads(layout.to_padded(project(x, weights)), 3)
        # The last layer computes only what heads read: P queries, such as those of masked words and
        # the pooler's position 0, but the keys and values of every token.
        for_query, for_key_value = weights.split(self._config.hidden_size)
        chosen = project(layout.gather_positions(x, positions), for_query)  # [B * P, H]
        chosen = tf.reshape(chosen, [-1, _length(positions), self._config.hidden_size])  # [B, P, H]
        others = layout.to_padded(project(x, for_key_value))  # [B, S, 2H]
        return self._split_heads(chosen, 1) + self._split_heads(others, 2)

    def _split_heads(self, projected: tf.Tensor, parts: int) -> list[tf.Tensor]:
        """[B, S, parts * H] -> parts tensors [B, N, S, D]."""
        heads, size = self._config.num_attention_heads, self._config.head_size
        # The one matmul left all parts side by side, so one transpose serves them all.
        split = tf.reshape(projected, [-1, _length(projected), parts, heads, size])
        return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]))


def _length(tensor: tf.Tensor) -> int | tf.Tensor:
    """S of [B, S, ...]."""
    # A Python number if it is known, so that shapes derived from it stay static.
    return tensor.shape[1] or tf.shape(tensor)[1]
