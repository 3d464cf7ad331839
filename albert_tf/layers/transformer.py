"""The stack of layers and what they share: which weights each of the L layers uses."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers import kernels
from albert_tf.layers.attention import AttentionBlock, AttentionWeights, attention_bias
from albert_tf.layers.basic import fold_in
from albert_tf.layers.feed_forward import FeedForwardBlock, FeedForwardWeights
from albert_tf.layers.recompute import Recomputation
from albert_tf.layers.streams import Stream


class SharedTransformer(keras.layers.Layer):
    """L layers over G groups of weights; each layer applies the `inner_group_num` blocks of its
    group in turn.

    Attributes:
      attention_blocks: AttentionBlock at group * inner_group_num + inner group.
      ffn_blocks: FeedForwardBlock, likewise.
    """

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        self.attention_blocks = self._make_blocks(
            AttentionBlock, config.num_attention_groups, "attention"
        )
        self.ffn_blocks = self._make_blocks(FeedForwardBlock, config.num_ffn_groups, "ffn")

    def _make_blocks(self, block: type, num_groups: int, kind: str) -> list[keras.layers.Layer]:
        return [
            block(self._config, name=f"group_{group}_inner_{inner}_{kind}")
            for group in range(num_groups)
            for inner in range(self._config.inner_group_num)
        ]

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        for block in self.attention_blocks + self.ffn_blocks:
            with tf.name_scope(block.name):
                block.build()
        super().build(input_shape)

    def call(self, streams: list[Stream], training: bool = False) -> list[list[tf.Tensor]]:
        """All layers.

        Returns:
          For each stream L * inner_group_num tensors [T, H]; with positions the last is [B * P, H].
        """
        config, schedule = self._config, self._schedule()
        recompute = training and config.recompute
        uses = [blocks for blocks in schedule for _ in streams]
        attention_uses, ffn_uses = zip(*uses, strict=True)
        weights_by_use = functools.partial(
            _weights_by_use, training=training, at_once=1 if recompute else 6
        )
        attention_weights = iter(weights_by_use(self.attention_blocks, attention_uses))
        ffn_weights = iter(weights_by_use(self.ffn_blocks, ffn_uses))
        biases = [attention_bias(stream.input_mask) for stream in streams]
        dropout = training and (config.hidden_dropout_prob or config.attention_probs_dropout_prob)
        seeds = [stream.seed if dropout else None for stream in streams]
        if dropout and recompute:  # Both computations have to draw the same dropout masks.
            seeds = [_fresh_seed() if seed is None else seed for seed in seeds]
        apply_in = [Recomputation(stream.rows) if recompute else _apply for stream in streams]
        outputs = [[stream.rows] for stream in streams]
        for step, (attention_at, ffn_at) in enumerate(schedule):
            attention, ffn = self.attention_blocks[attention_at], self.ffn_blocks[ffn_at]
            for stream, bias, seed, apply, rows in zip(
                streams, biases, seeds, apply_in, outputs, strict=True
            ):
                seed = fold_in(seed, step)  # Differs from layer to layer, shared or not.
                attended = apply(
                    attention,
                    rows[-1],
                    next(attention_weights),
                    bias,
                    stream.layout,
                    stream.positions if step == len(schedule) - 1 else None,
                    training=training,
                    seed=fold_in(seed, 0),
                )
                rows.append(
                    apply(
                        ffn,
                        attended,
                        next(ffn_weights),
                        training=training,
                        seed=fold_in(seed, 1),
                    )
                )
        return [rows[1:] for rows in outputs]

    def _schedule(self) -> list[tuple[int, int]]:
        """Which attention and which FFN block are applied, one pair after the other."""
        config, size = self._config, self._config.inner_group_num

        def start(layer: int, num_groups: int) -> int:
            return config.group_of_layer(layer, num_groups) * size

        return [
            (
                start(layer, config.num_attention_groups) + inner,
                start(layer, config.num_ffn_groups) + inner,
            )
            for layer in range(config.num_hidden_layers)
            for inner in range(size)
        ]


def _weights_by_use(
    blocks: list[AttentionBlock] | list[FeedForwardBlock],
    uses: tuple[int, ...],
    training: bool,
    at_once: int,
) -> list[AttentionWeights] | list[FeedForwardWeights]:
    """The weights for each use, whose block is `blocks[uses[i]]`; made once for each block.

    Args:
      at_once: how many gradients of shared weights are added at a time, see `kernels.share`.
    """
    weights = [block.weights_once() for block in blocks]
    if not training:
        return [weights[at] for at in uses]
    copies = [iter(kernels.share(each, uses.count(at), at_once)) for at, each in enumerate(weights)]
    return [next(copies[at]) for at in uses]


def _fresh_seed() -> tf.Tensor:
    return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)


def _apply(block: AttentionBlock | FeedForwardBlock, *arguments: Any, **keywords: Any) -> tf.Tensor:
    """What `Recomputation` does, keeping all that the gradient needs."""
    return block(*arguments, **keywords)
