"""The objective of text pairs: texts that belong together get similar vectors."""

from __future__ import annotations

from typing import ClassVar

import tensorflow as tf

from albert_tf.layers.operations import Seed, fold_in
from albert_tf.models.classifiers import AlbertSentenceEncoder
from albert_tf.models.losses import Ratio, cross_entropy, weighted_mean

LOSSES = ("in_batch", "cosine")
_SCALE = 20.0  # Factor of cosines before the softmax, as in sentence-transformers.
_SPAN = 3  # Number of tokens in a hidden span.


class PairObjective:
    """A loss on the cosines of pairs of vectors. `in_batch`: find the second text of each first one
    in the batch (MultipleNegativesRankingLoss of sentence-transformers, in one direction);
    `cosine`: the squared difference of cosine and label (CosineSimilarityLoss).
    """

    losses: ClassVar = {"pair_loss": "example_weights"}
    metrics = ("pair_loss",)

    def __init__(
        self, model: AlbertSentenceEncoder, loss: str = "in_batch", mask_prob: float = 0.0
    ) -> None:
        """mask_prob: the share of the tokens of both texts that training hides."""
        self.model, self.loss, self.mask_prob = model, loss, mask_prob

    def ratios(
        self, batch: dict[str, tf.Tensor], training: bool, seed: Seed = None
    ) -> dict[str, Ratio]:
        """Ratios by name; batch: inputs int32 [B, 2, S], `example_weights` float32 [B] and, for
        `cosine`, `label_values` float32 [B].
        """
        if training and self.mask_prob:
            hidden = hide_tokens(batch["input_mask"], self.mask_prob, fold_in(seed, 1))
            batch = {**batch, "input_mask": hidden}
        vectors = self.model(batch, training=training, seed=fold_in(seed, 0))["mean_output"]
        vectors = tf.cast(vectors, tf.float32)  # [B, 2, H]
        first, second = vectors[:, 0], vectors[:, 1]
        weights = batch["example_weights"]
        if self.loss == "cosine":
            losses = cosine_loss(first, second, batch["label_values"])
        else:
            losses = in_batch_loss(first, second, weights)
        return {"pair_loss": weighted_mean(losses, weights)}


def in_batch_loss(first: tf.Tensor, second: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Cross-entropies float32 [B] of finding row i of `second` for row i of `first`, [B, H], by
    cosine; rows of weight 0 are not candidates.
    """
    logits = _SCALE * tf.matmul(_unit(first), _unit(second), transpose_b=True)  # [B, B]
    # [B] is added to each row, which removes the columns of candidates of weight 0.
    logits += -1e9 * tf.cast(tf.equal(weights, 0), tf.float32)
    return cross_entropy(logits, tf.range(tf.shape(logits)[0]))


def cosine_loss(first: tf.Tensor, second: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Squared differences float32 [B] of cosines and labels."""
    return tf.square(tf.reduce_sum(_unit(first) * _unit(second), axis=-1) - labels)


def hide_tokens(mask: tf.Tensor, share: float, seed: Seed) -> tf.Tensor:
    """The mask, int32 [..., S], set to 0 for about this share of the tokens, in spans of three; the
    first and last token of a text, [CLS] and [SEP], stay.
    """
    shape = tf.shape(mask)
    noise = tf.random.uniform(shape) if seed is None else tf.random.stateless_uniform(shape, seed)
    # A token is hidden if a span begins at it or one of the two before it: 1 - (1 - q)^3 = share.
    begins = tf.cast(noise < 1 - (1 - share) ** (1 / _SPAN), tf.int32)
    covered = tf.add_n([begins] + [_shifted(begins, by) for by in range(1, _SPAN)])
    is_inner = mask * _shifted(mask, 1) * _shifted(mask, -1)
    return tf.where((covered > 0) & (is_inner > 0), 0, mask)


def _shifted(values: tf.Tensor, by: int) -> tf.Tensor:
    """int32 [..., S] shifted along the last axis, filled with zeros: 1 2 3 by 1 -> 0 1 2."""
    rest = tf.zeros_like(values[..., : abs(by)])
    parts = [rest, values[..., :-by]] if by > 0 else [values[..., -by:], rest]
    return tf.concat(parts, axis=-1)


def _unit(vectors: tf.Tensor) -> tf.Tensor:
    # `epsilon` bounds the squared norm: 1e-12 for the norm, as where pairs are scored.
    return tf.math.l2_normalize(vectors, axis=-1, epsilon=1e-24)
