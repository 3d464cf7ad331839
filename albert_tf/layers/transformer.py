"""The stack of layers, and which of them share their weights."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.basic import SizedLayer
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.forward_pass import ForwardPass
from albert_tf.layers.operations import fold_in


class SharedTransformer(SizedLayer):
    """L layers over G groups of weights (paper, section 3.1); each layer applies the
    `inner_group_num` blocks of its group in turn.

    Attributes:
      attention_blocks: AttentionBlock at group * inner_group_num + inner group.
      ffn_blocks: FeedForwardBlock, likewise.
    """

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.hidden_size, **kwargs)
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
        seed: tf.Tensor | None = None,
    ) -> list[tf.Tensor]:
        """The output of every layer.

        Args:
          x: float [T, H], the embedded tokens.
          forward: what all layers have in common.
          positions: int32 [B, P]: the last layer is computed at these only; None: at all.
          seed: int32 [2], from which all dropout masks follow; None draws fresh ones.

        Returns:
          L * inner_group_num tensors [T, H]; with positions the last is [B * P, H].
        """
        attention_blocks, ffn_blocks = zip(*self._layers(), strict=True)
        attentions = forward.operations.read(attention_blocks)
        feed_forwards = forward.operations.read(ffn_blocks)
        outputs, last = [], len(attentions) - 1
        for number, (attention, feed_forward) in enumerate(zip(attentions, feed_forwards)):
            layer_seed = fold_in(seed, number)  # Differs from layer to layer, shared or not.
            at = positions if number == last else None
            attended = attention(x, forward, at, fold_in(layer_seed, 0))
            x = attention.norm(forward.layout.rows_at(x, at) + attended)
            x = feed_forward.norm(x + feed_forward(x, forward, fold_in(layer_seed, 1)))
            outputs.append(x)
        return outputs

    def _layers(self) -> list[tuple[AttentionBlock, FeedForwardBlock]]:
        """The blocks of each layer in order; a shared one occurs again and again.

        With 4 layers, 2 groups and one inner group: blocks 0, 0, 1, 1.
        """
        config, size = self._config, self._config.inner_group_num

        def first(layer: int, num_groups: int) -> int:
            return config.group_of_layer(layer, num_groups) * size

        return [
            (
                self.attention_blocks[first(layer, config.num_attention_groups) + inner],
                self.ffn_blocks[first(layer, config.num_ffn_groups) + inner],
            )
            for layer in range(config.num_hidden_layers)
            for inner in range(size)
        ]
