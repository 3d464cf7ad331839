"""The stack of layers, and which of them share their weights."""

from __future__ import annotations

import itertools

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.basic import SizedLayer
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.forward_pass import ForwardPass
from albert_tf.layers.operations import Seed, fold_in


class SharedTransformer(SizedLayer):
    """L layers over G groups of weights (paper, section 3.1); each layer applies the
    `inner_group_num` blocks of its group in turn. Without dropout, a layer is

        x = norm(x + attention(x)); x = norm(x + feed_forward(x))

    Attributes:
      attention_blocks: AttentionBlock at group * inner_group_num + inner group.
      ffn_blocks: FeedForwardBlock, likewise.
    """

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.hidden_size, **kwargs)

        def blocks(kind: type, num_groups: int, name: str) -> list[keras.layers.Layer]:
            places = itertools.product(range(num_groups), range(config.inner_group_num))
            return [kind(config, name=f"group_{g}_inner_{i}_{name}") for g, i in places]

        self.attention_blocks = blocks(AttentionBlock, config.num_attention_groups, "attention")
        self.ffn_blocks = blocks(FeedForwardBlock, config.num_ffn_groups, "ffn")

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """All blocks."""
        return self.attention_blocks + self.ffn_blocks

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        for block in self.layers:
            with tf.name_scope(block.name):
                block.build()
        super().build(input_shape)

    def call(
        self,
        x: tf.Tensor,
        forward: ForwardPass,
        positions: tf.Tensor | None = None,
        seed: Seed = None,
    ) -> list[tf.Tensor]:
        """The embedded tokens, float [T, H] -> the output of every layer, L * inner_group_num
        tensors [T, H]; with positions the last is computed at these only, [B * P, H].
        """
        attentions = forward.operations.read(self._in_layers(self.attention_blocks))
        feed_forwards = forward.operations.read(self._in_layers(self.ffn_blocks))
        outputs, last = [], len(attentions) - 1
        for number, (attention, feed_forward) in enumerate(zip(attentions, feed_forwards)):
            layer_seed = fold_in(seed, number)  # Differs from layer to layer, shared or not.
            at = positions if number == last else None
            attended = attention(x, forward, at, seed=fold_in(layer_seed, 0))
            x = attention.norm(forward.layout.gather_positions(x, at) + attended)
            x = feed_forward.norm(x + feed_forward(x, forward, seed=fold_in(layer_seed, 1)))
            outputs.append(x)
        return outputs

    def _in_layers(self, blocks: list[keras.layers.Layer]) -> list[keras.layers.Layer]:
        """The block of each layer; a shared one occurs again and again.

        2 blocks in 4 layers -> blocks 0, 0, 1, 1; if both are of one inner group -> 0, 1, 0, 1, ...
        """
        config, size = self._config, self._config.inner_group_num
        layers, num_groups = range(config.num_hidden_layers), len(blocks) // size
        groups = [config.group_of_layer(layer, num_groups) for layer in layers]
        return [blocks[group * size + inner] for group in groups for inner in range(size)]
