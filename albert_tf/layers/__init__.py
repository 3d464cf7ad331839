"""The building blocks of an encoder, from small to large."""

from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.embedding import AlbertEmbedding
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.transformer import SharedTransformer

__all__ = ["AlbertEmbedding", "AttentionBlock", "FeedForwardBlock", "SharedTransformer"]
