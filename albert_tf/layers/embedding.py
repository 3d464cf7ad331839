"""Factorized embeddings: words, positions and segment types of width E, then a projection to H."""

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
from albert_tf.layers.operations import Seed
from albert_tf.layers.packing import PaddedLayout


class AlbertEmbedding(SizedLayer):
    """Sum of word, type and position embeddings, layer norm, dropout, and the projection E -> H
    if the configuration `has_embedding_projection`.
    """

    # The paper's first saving (section 3.1): V x E + E x H numbers instead of V x H. For
    # ALBERT-base that is 3.9 million instead of 23. A word's embedding does not depend on its
    # context, so it needs less room than the hidden states, which do.

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.hidden_size, **kwargs)
        self.layer_norm = LayerNorm(config, name="layer_norm")
        self.dropout = SeededDropout(config.hidden_dropout_prob, name="dropout")
        self.projection = None
        if config.has_embedding_projection:
            self.projection = dense_layer(config.hidden_size, config, name="projection")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        config, width = self._config, self._config.embedding_size

        def table(name: str, rows: int) -> tf.Variable:
            return self.add_weight(name, [rows, width], initializer=initializer(config))

        self.word_embeddings = table("word_embeddings", config.vocab_size)
        self.token_type_embeddings = table("token_type_embeddings", config.type_vocab_size)
        self.position_embeddings = table("position_embeddings", config.max_position_embeddings)
        build_children(width, self.layer_norm)
        if self.projection is not None:
            build_children(width, self.projection)
        super().build(input_shape)

    def call(
        self,
        word_ids: tf.Tensor,
        type_ids: tf.Tensor,
        layout: PaddedLayout,
        training: bool = False,
        seed: Seed = None,
    ) -> tf.Tensor:
        """Word and type ids int32 [B, S] -> float [T, H], rows of the layout."""
        self._check_length(word_ids.shape[1])
        rows = tf.gather(self.word_embeddings, layout.to_rows(word_ids))  # [T, E]
        # A product with one-hot rows: the gradient of so small a table is cheaper as a matmul than
        # as a scatter.
        types = tf.one_hot(layout.to_rows(type_ids), self._config.type_vocab_size, dtype=rows.dtype)
        rows += tf.matmul(types, self.token_type_embeddings)  # [T, types] x [types, E]
        rows = layout.add_positions(rows, self.position_embeddings)
        # Normalized at width E, before the projection, as in the reference.
        rows = self.dropout(self.layer_norm(rows), training=training, seed=seed)
        return rows if self.projection is None else self.projection(rows)

    def _check_length(self, length: int | None) -> None:
        limit = self._config.max_position_embeddings
        if length is not None and length > limit:
            raise ValueError(
                f"the sequence length {length} is longer than the model's {limit} positions "
                f"(max_position_embeddings). Use sequences of at most {limit} tokens."
            )
