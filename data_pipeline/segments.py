"""Documents to sentence pairs: (A, B, label) for sentence-order or next-sentence prediction.

Follows google-research/albert's create_instances_from_document, except that sentence-order pairs
never hold text of two documents: a chunk of one sentence is divided at a word inside it.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Callable, NamedTuple

import numpy as np

OBJECTIVES = ("sop", "nsp", "none")
IN_ORDER, SWAPPED = 0, 1
ONE_WORD = "chunk of a single word"
_EMPTY = np.zeros(0, np.int32)


class Pair(NamedTuple):
    """Two segments of token ids (int32 [a], [b]); 0 when B follows A, 1 when swapped or random."""

    tokens_a: np.ndarray
    tokens_b: np.ndarray
    label: int


def target_length(max_num_tokens: int, short_seq_prob: float, rng: np.random.Generator) -> int:
    """The number of tokens after which a chunk is closed; drawn once per document and copy."""
    if rng.random() < short_seq_prob:
        return int(rng.integers(2, max_num_tokens + 1))
    return max_num_tokens


def split_long_sentence(
    tokens: np.ndarray, limit: int, is_word_start: np.ndarray
) -> list[np.ndarray]:
    """Parts of at most `limit` tokens, cut before a word where there is one; nothing is lost."""
    parts = []
    while len(tokens) > limit:
        starts = np.flatnonzero(is_word_start[tokens[1 : limit + 1]])
        cut = int(starts[-1]) + 1 if len(starts) else limit
        parts.append(tokens[:cut])
        tokens = tokens[cut:]
    return [*parts, tokens]


def take_chunk(
    lengths: Sequence[int], words: Sequence[int], start: int, target: int, min_words: int
) -> int:
    """End of the chunk of sentences from `start` on that has `target` tokens and `min_words`."""
    num_tokens = num_words = 0
    for end in range(start, len(lengths)):
        num_tokens += lengths[end]
        num_words += words[end]
        if num_tokens >= target and num_words >= min_words:
            return end + 1
    return len(lengths)


def divide(
    chunk: Sequence[np.ndarray], is_word_start: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """A chunk as two neighbouring segments, or None when it is a single word.

    The border is uniform among those between sentences; within a single sentence, among its words.
    """
    if len(chunk) > 1:
        border = int(rng.integers(1, len(chunk)))
        return np.concatenate(chunk[:border]), np.concatenate(chunk[border:])
    starts = np.flatnonzero(is_word_start[chunk[0][1:]]) + 1
    if not len(starts):
        return None
    border = int(rng.choice(starts))
    return chunk[0][:border], chunk[0][border:]


def truncated_lengths(length_a: int, length_b: int, limit: int) -> tuple[int, int]:
    """Lengths after tokens are taken one by one from the longer (B, if equal) down to `limit`."""
    excess = max(0, length_a + length_b - limit)
    from_longer = min(excess, abs(length_a - length_b))
    rest = excess - from_longer
    cut_a = (from_longer if length_a > length_b else 0) + rest // 2
    return length_a - cut_a, length_b - (excess - cut_a)


def truncate(
    tokens_a: np.ndarray, tokens_b: np.ndarray, limit: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Both segments cut to `limit` tokens together, each token off the front or the back."""
    lengths = truncated_lengths(len(tokens_a), len(tokens_b), limit)
    kept = []
    for tokens, length in zip((tokens_a, tokens_b), lengths):
        front = int(rng.binomial(len(tokens) - length, 0.5)) if length < len(tokens) else 0
        kept.append(tokens[front : front + length])
    return kept[0], kept[1]


def random_segment(
    sentences: Sequence[np.ndarray], length: int, rng: np.random.Generator
) -> np.ndarray:
    """Consecutive sentences from a random position on: one, and more up to `length` tokens."""
    start = end = int(rng.integers(len(sentences)))
    taken = 0
    while end < len(sentences) and (end == start or taken < length):
        taken += len(sentences[end])
        end += 1
    return np.concatenate(sentences[start:end])


class _Chunks(NamedTuple):
    """A document made ready: sentences of at most `limit` tokens, and their sizes."""

    sentences: list[np.ndarray]
    lengths: list[int]
    words: list[int]


def _prepare(sentences: Sequence[np.ndarray], limit: int, is_word_start: np.ndarray) -> _Chunks:
    parts = [
        part
        for sentence in sentences
        if len(sentence)
        for part in split_long_sentence(np.asarray(sentence, np.int32), limit, is_word_start)
    ]
    words = [1 + int(np.count_nonzero(is_word_start[part[1:]])) for part in parts]
    return _Chunks(parts, [len(part) for part in parts], words)


def make_pairs(
    sentences: Sequence[np.ndarray],
    objective: str,
    max_num_tokens: int,
    short_seq_prob: float,
    is_word_start: np.ndarray,
    rng: np.random.Generator,
    random_document: Callable[[], Sequence[np.ndarray]] | None = None,
) -> tuple[list[Pair], collections.Counter]:
    """The pairs of one document.

    Args:
      sentences: token ids of each sentence, int [n].
      objective: "sop": both segments of one chunk, swapped with probability 1/2; "nsp": B from
        `random_document` with probability 1/2; "none": the whole chunk as A, an empty B, label 0.
      max_num_tokens: at most so many tokens in A and B together.
      short_seq_prob: probability that this document gets a shorter target length.
      is_word_start: bool [V].
      rng: source of every choice.
      random_document: draws the sentences of another document; "nsp" only.

    Returns:
      The pairs, and the number of skipped chunks by reason.
    """
    chunks = _prepare(sentences, max_num_tokens, is_word_start)
    target = target_length(max_num_tokens, short_seq_prob, rng)
    min_words = 2 if objective == "sop" else 1
    pairs, skipped, start = [], collections.Counter(), 0
    while start < len(chunks.sentences):
        end = take_chunk(chunks.lengths, chunks.words, start, target, min_words)
        chunk = chunks.sentences[start:end]
        start = end
        if objective == "none":
            divided, label = (np.concatenate(chunk), _EMPTY), IN_ORDER
        elif objective == "nsp" and rng.random() < 0.5:
            used = int(rng.integers(1, len(chunk))) if len(chunk) > 1 else 1
            start -= len(chunk) - used  # the rest of the chunk is used again
            first = np.concatenate(chunk[:used])
            divided = first, random_segment(random_document(), target - len(first), rng)
            label = SWAPPED
        else:
            divided, label = divide(chunk, is_word_start, rng), IN_ORDER
        if divided is None:
            skipped[ONE_WORD] += 1
            continue
        if objective == "sop" and rng.random() < 0.5:
            divided, label = divided[::-1], SWAPPED
        pairs.append(Pair(*truncate(*divided, max_num_tokens, rng), label))
    return pairs, skipped
