"""The stack of layers and what they share: which weights each of the L layers uses."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.attention import AttentionBlock, attention_bias
from albert_tf.layers.basic import fold_in
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.packing import PaddedLayout


class SharedTransformer(keras.layers.Layer):
    """L layers over G groups of weights; each layer applies the `inner_group_num` blocks of its
    group in turn.

    Attributes:
      attention_blocks: AttentionBlock by [group][inner group].
      ffn_blocks: FeedForwardBlock by [group][inner group].
    """

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        self.attention_blocks = self._make_blocks(
            AttentionBlock, config.num_attention_groups, "attention"
        )
        self.ffn_blocks = self._make_blocks(FeedForwardBlock, config.num_ffn_groups, "ffn")

    def _make_blocks(
        self, block: type, num_groups: int, kind: str
    ) -> list[list[keras.layers.Layer]]:
        return [
            [
                block(self._config, name=f"group_{group}_inner_{inner}_{kind}")
                for inner in range(self._config.inner_group_num)
            ]
            for group in range(num_groups)
        ]

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        for group in self.attention_blocks + self.ffn_blocks:
            for block in group:
                with tf.name_scope(block.name):
                    block.build()
        super().build(input_shape)

    def call(
        self,
        hidden: tf.Tensor,
        input_mask: tf.Tensor,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> list[tf.Tensor]:
        """hidden: float [B, S, H]; input_mask: int32 [B, S]; returns L * inner_group_num tensors
        [B, S, H].
        """
        layout, bias = PaddedLayout(input_mask), attention_bias(input_mask)
        rows = layout.to_rows(hidden)  # [T, H]
        outputs = []
        for attention, ffn in self._blocks_in_order():
            # Dropout masks are independent in each layer although the weights are shared.
            step = len(outputs)
            rows = attention(rows, bias, layout, training=training, seed=fold_in(seed, 2 * step))
            rows = ffn(rows, training=training, seed=fold_in(seed, 2 * step + 1))
            outputs.append(layout.to_padded(rows))
        return outputs

    def _blocks_in_order(self) -> list[tuple[AttentionBlock, FeedForwardBlock]]:
        config = self._config
        order = []
        for layer in range(config.num_hidden_layers):
            attention_group = self.attention_blocks[
                config.group_of_layer(layer, config.num_attention_groups)
            ]
            ffn_group = self.ffn_blocks[config.group_of_layer(layer, config.num_ffn_groups)]
            order.extend(zip(attention_group, ffn_group))
        return order
