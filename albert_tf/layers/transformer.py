"""The stack of layers, and which of them share their weights."""

# How one call works. `AlbertEncoder` has embedded the ids as rows x [T, H], one for each token, and
# calls the stack with them and a `ForwardPass`, which holds what all layers share for a batch:
# operations, layout, bias, and whether dropout is on.
#
# 1. `operations.read` (blocks.py) reads the weights of every layer's block, and returns a
#    `ReadyBlock` for each layer. It does so before the first layer, because layers share blocks.
# 2. `attention(x, forward, ...)` calls such a `ReadyBlock`, which passes its weights on to
#    `AttentionBlock.call` (attention.py). Steps 3 to 6 are there, in ten lines.
# 3. One matmul computes queries, keys and values from the rows, [T, 3H]. The queries are already
#    scaled by 1 / sqrt(D), since the weights are. (The last layer may need queries at a few
#    positions only: then it uses two matmuls.)
# 4. `layout.to_padded` (packing.py) puts each row at its place in its sequence, [B, S, 3H], because
#    attention compares the tokens of a sequence. Dense layers do not, and in a packed layout
#    padding has no rows, so they compute real tokens only. Splitting the heads gives three
#    [B, N, S, D].
# 5. `operations.attend`: softmax(q k^T + bias) v, where the bias of padding is -10000.
# 6. `layout.to_rows` converts back to rows, [T, H]; one more dense layer and dropout follow.
# 7. Back here, x is added and the sum normalized. The feed-forward block works the same way, but
#    needs no sequences.
#
# `operations` is one object per forward pass, with the plain formulas (operations.py) or with forms
# that are faster on CPUs (layers/fast). Layers call both in the same way, and the results are equal
# up to rounding, so read the plain ones first. If activations are recomputed, the call of step 2
# goes through fast/recompute.py, which computes the block again for its gradient.

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
    `inner_group_num` blocks of its group in turn.
    """

    # The paper's second saving: in ALBERT-base one layer's weights, 7.1 million, serve all twelve.
    # That saves parameters, gradients and optimizer state, but no arithmetic.

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.hidden_size, **kwargs)

        # Variables are named after these blocks, and checkpoints find them by these names.
        def blocks(kind: type, num_groups: int, name: str) -> list[keras.layers.Layer]:
            places = itertools.product(range(num_groups), range(config.inner_group_num))
            return [kind(config, name=f"group_{g}_inner_{i}_{name}") for g, i in places]

        # Indexed by group * inner_group_num + inner group. Attention and feed-forward networks have
        # separate groups, because the paper also tries to share only one of them (its table 4).
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
            # By number, not by block: layers that share a block must not share their masks.
            layer_seed = fold_in(seed, number)
            # Only the last layer may leave tokens out: the attention of a next one needs them.
            at = positions if number == last else None
            attended = attention(x, forward, at, seed=fold_in(layer_seed, 0))
            kept = x if at is None else forward.layout.gather_positions(x, at)
            # Post-LN, as in BERT and the reference: the sum is normalized, not the block's input.
            # With Pre-LN, published weights would load, but give meaningless outputs.
            x = attention.norm(kept + attended)
            x = feed_forward.norm(x + feed_forward(x, forward, seed=fold_in(layer_seed, 1)))
            outputs.append(x)
        return outputs

    def _in_layers(self, blocks: list[keras.layers.Layer]) -> list[keras.layers.Layer]:
        """The block of each layer; a shared one occurs several times.

        2 blocks in 4 layers -> blocks 0, 0, 1, 1; if both are in one group -> 0, 1, 0, 1, ...
        """
        config, size = self._config, self._config.inner_group_num
        layers, num_groups = range(config.num_hidden_layers), len(blocks) // size
        groups = [config.group_of_layer(layer, num_groups) for layer in layers]
        return [blocks[group * size + inner] for group in groups for inner in range(size)]
