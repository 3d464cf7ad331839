"""Weights that are made only from counts of a text's words, and start past the plateau.

From random weights, a shared stack predicts by word frequency for its first thousands of updates:
it cannot distinguish positions or neighbors until the embeddings are meaningful. Here

- the first part of an embedding holds the word (vectors of its neighbors' statistics), the rest its
  position, as sines and cosines (Vaswani et al. 2017);
- the projection E -> H keeps both apart, at the scale of the layers' normalized outputs;
- half of the heads attend to the word one or more places before or after (compare Trockman and
  Kolter 2023, who copy such patterns from trained models): a query is its position's sinusoid
  rotated by that offset;
- the bias of the output is the logarithm of the words' frequencies.

Everything else stays random, and everything is trained.
"""

from __future__ import annotations

import numpy as np

from albert_tf.errors import UserError
from albert_tf.layers.attention import AttentionBlock
from albert_tf.models import AlbertPretrainer
from albert_tf.starting_weights.word_statistics import WordStatistics

POSITION_SHARE = 4  # One number in four of an embedding encodes the position.
WORD_SCALE = 2.0  # Of word embeddings, in standard deviations of random ones.
SHARPNESS = 10.0  # A head's logit at its offset; it falls to about 7 next to it, to 0 far away.
_WAVES = (np.pi, np.pi / 500)  # Highest and lowest frequency: of 2 positions, and of 1,000.


def sinusoids(num_positions: int, size: int) -> np.ndarray:
    """Sines and cosines of positions, float32 [num_positions, size], their mean square 1.

    Waves of 2 to 1,000 positions; entries 2 k and 2 k + 1 are one wave. The shortest is shorter
    than in the paper, so that neighbors differ strongly.
    """
    frequencies = _frequencies(size)
    angles = np.arange(num_positions)[:, np.newaxis] * frequencies  # [positions, size / 2]
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # [positions, size / 2, 2]
    return np.sqrt(2) * waves.reshape(num_positions, size).astype(np.float32)


def shift(size: int, offset: int) -> np.ndarray:
    """The matrix M, float32 [size, size], for which sinusoid(i) M = sinusoid(i + offset)."""
    matrix = np.zeros([size, size], np.float32)
    for wave, frequency in enumerate(_frequencies(size)):
        sine, cosine = np.sin(frequency * offset), np.cos(frequency * offset)
        rows = slice(2 * wave, 2 * wave + 2)
        matrix[rows, rows] = [[cosine, -sine], [sine, cosine]]
    return matrix


def _frequencies(size: int) -> np.ndarray:
    """Radians a position, [size / 2], falling geometrically."""
    return np.geomspace(*_WAVES, size // 2)


def position_size(embedding_size: int, head_size: int) -> int:
    """The number of an embedding's entries that encode the position: a multiple of 2, no more than
    a head can compare.
    """
    return min(embedding_size // POSITION_SHARE, head_size) // 2 * 2


def set_informed_weights(
    model: AlbertPretrainer, statistics: WordStatistics, seed: int = 0
) -> None:
    """Replaces embeddings, their projection, queries, keys and the output's bias of a model; a
    UserError if it has no projection, or embeddings or heads are too small.
    """
    config = model.config
    size = position_size(config.embedding_size, config.head_size)
    embeddings = model.encoder.embeddings
    if embeddings.projection is None or config.embedding_size > config.hidden_size or size < 4:
        raise UserError(
            f"embedding_size {config.embedding_size} and hidden_size {config.hidden_size}: word "
            "statistics need factorized embeddings, with embedding_size at least 16 and less than "
            "hidden_size, and heads of size 4 or more. Start from random weights."
        )
    random = np.random.default_rng(seed)
    words = slice(0, config.embedding_size - size)
    places = slice(config.embedding_size - size, config.embedding_size)
    scale = WORD_SCALE * config.initializer_range

    table = embeddings.word_embeddings.numpy()  # [V, E]
    vectors = statistics.vectors(words.stop, seed)  # [V, E - positions]
    occurs = vectors.any(axis=1)
    table[occurs, words] = scale * vectors[occurs]
    table[:, places] = 0
    embeddings.word_embeddings.assign(table)

    positions = np.zeros(embeddings.position_embeddings.shape, np.float32)
    positions[:, places] = scale * sinusoids(config.max_position_embeddings, size)
    embeddings.position_embeddings.assign(positions)

    # Orthonormal rows, scaled so that normalized embeddings are mapped to variance 1.
    basis, _ = np.linalg.qr(random.normal(size=[config.hidden_size, config.embedding_size]))
    basis = basis.T.astype(np.float32)  # [E, H]
    gain = np.sqrt(config.hidden_size / config.embedding_size)
    embeddings.projection.kernel.assign(gain * basis)
    for block in model.encoder.transformer.attention_blocks:
        _set_attention(block, basis[places] / gain, config.num_attention_heads)
    model.masked_lm.output_bias.assign(statistics.log_probabilities())


def _set_attention(block: AttentionBlock, to_position: np.ndarray, num_heads: int) -> None:
    """Makes half of the heads attend to an offset: 1, -1, 2, -2, and so on."""
    query, key = block.query.kernel.numpy(), block.key.kernel.numpy()  # [H, N * D]
    size = len(to_position)
    head_size = query.shape[1] // num_heads
    # The product of two equal sinusoids is `size`; logits are divided by sqrt(D).
    gain = np.sqrt(SHARPNESS * np.sqrt(head_size) / size)
    for head in range(max(num_heads // 2, 1)):
        offset = (1 + head // 2) * (-1) ** head
        columns = slice(head * head_size, head * head_size + size)
        query[:, columns] = gain * to_position.T @ shift(size, offset)
        key[:, columns] = gain * to_position.T
    block.query.kernel.assign(query)
    block.key.kernel.assign(key)
