"""Blocks with their weights, and the operations object of a forward pass."""

# A block (`AttentionBlock`, `FeedForwardBlock`) does not read its variables itself.
# `Operations.read` does so before the first layer: layers share blocks, and the fast forms read
# each block only once. The plain form below reads it for each layer: in ALBERT-base it scales,
# joins and casts the same matrices twelve times, and keeps twelve copies for the gradient.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import tensorflow as tf

from albert_tf.layers import operations
from albert_tf.layers.operations import DenseWeights, Seed

# The weights of a block for one use: of its first dense layer, and of its last.
BlockWeights: TypeAlias = tuple[DenseWeights, DenseWeights]


class Block(Protocol):
    """A part of a layer: attention, or the feed-forward network."""

    name: str
    drops: bool  # Whether it has dropout in training.
    layer_norm: Any  # The LayerNorm that follows it.

    def read_weights(self) -> BlockWeights:
        """The current weights, in the precision of the computation."""

    def __call__(
        self, x: tf.Tensor, weights: BlockWeights, forward: Any, *positions: Any, seed: Seed
    ) -> tf.Tensor:
        """The output of the block; an AttentionBlock takes the positions to compute, or None."""


class ReadyBlock(NamedTuple):
    """A block with its weights, for one of the layers that share it."""

    operations: Operations
    block: Block
    weights: BlockWeights

    def __call__(self, x: tf.Tensor, forward: Any, *positions: Any, seed: Seed) -> tf.Tensor:
        """The output of the block."""
        return self.block(x, self.weights, forward, *positions, seed=seed)

    def norm(self, x: tf.Tensor) -> tf.Tensor:
        """The layer normalization that follows the block."""
        return self.operations.layer_norm(x, self.block.layer_norm)


class Operations:
    """The operations of the layers in one forward pass; here the plain formulas."""

    # One object per forward pass, made by `operations_for` (fast/operations.py), not one per model:
    # a model trained with a fast form is exported with the plain one.
    row_multiple = 1  # Packed rows are filled up to a multiple of this number.
    ready_block: type[ReadyBlock] = ReadyBlock
    attend = staticmethod(operations.attend)

    def in_parts(self, function: Callable[..., Any], batch: Sequence[tf.Tensor | None]) -> Any:
        """Calls function(*batch) on tensors [B, ...] or None. A fast form calls it on parts of the
        batch, and joins the results: [9, S] as [5, S] and [4, S].
        """
        return function(*batch)

    def read(self, blocks: Sequence[Block]) -> list[ReadyBlock]:
        """The blocks with their weights, ready to call: a, a, b -> (a, w_a), (a, w_a), (b, w_b)."""
        weights = self.weights_of_each(blocks)
        return [self.ready_block(self, *each) for each in zip(blocks, weights, strict=True)]

    def weights_of_each(self, blocks: Sequence[Block]) -> list[BlockWeights]:
        """`read_weights()` of each block."""
        # Each use reads and casts the variables separately, so that the gradients of a block that
        # occurs several times are added in the precision of its variables, float32.
        return [block.read_weights() for block in blocks]

    def layer_norm(self, x: tf.Tensor, norm: Any) -> tf.Tensor:
        """norm(x) of a LayerNorm."""
        return operations.layer_norm(x, norm.gamma, norm.beta, norm.epsilon)

    def dense(self, x: tf.Tensor, weights: DenseWeights) -> tf.Tensor:
        """float [T, in] -> [T, out]."""
        return operations.dense(x, *weights)

    def activation(self, name: str) -> Callable[[tf.Tensor], tf.Tensor]:
        """The function that `AlbertConfig.hidden_act` names."""
        return operations.ACTIVATIONS[name]


class ObservedOperations(Operations):
    """The plain formulas, keeping the attention probabilities of each layer."""

    def __init__(self) -> None:
        self.attention_probs: list[tf.Tensor] = []  # [B, N, Q, S] each, before dropout.

    def attend(self, query, key, value, bias, dropout=None) -> tf.Tensor:
        """`operations.attend`, keeping the probabilities."""
        probs = operations.attention_probs(query, key, bias)
        self.attention_probs.append(probs)
        return tf.matmul(dropout(probs) if dropout else probs, value)
