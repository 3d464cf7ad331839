"""Tokenized documents to pairs of segments in a TensorFlow graph: the choices of ../segments.py.

`segments.PairMaker` goes through a document from chunk to chunk. Here every sentence names the one
that would follow it as the beginning of a chunk, and the way from a document's first sentence is
found for all documents at once (`_on_the_way`), in as many rounds as the number of chunks has
binary digits. A loop over chunks would be a graph operation for each of them, and take longer than
tokenizing. The same draws give the same pairs (a test compares them).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import tensorflow as tf

from data_pipeline.pretraining.segments import Pairs
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.pretraining.without_records.tokens import split_long_sentences

# The choices that are drawn; each has a stream of random numbers of its own.
(
    BACKWARDS,
    IS_SHORT,
    SHORT_TARGET,
    BORDER,
    LAST_FROM_A,
    FRONT_A,
    FRONT_B,
    CONTINUES,
    USED,
    OTHER,
    OTHER_START,
    ORDER,
) = range(12)


class Draws:
    """Random numbers of one block of documents, a function of its key.

    Args:
      key: int64 [2].
    """

    def __init__(self, key: tf.Tensor) -> None:
        self._key = key

    def _seed(self, stream: int) -> tf.Tensor:
        return tf.random.experimental.stateless_fold_in(self._key, stream, alg="philox")

    def uniform(self, stream: int, count: tf.Tensor) -> tf.Tensor:
        """float64 [count] in [0, 1)."""
        seed = self._seed(stream)
        return tf.random.stateless_uniform([count], seed, dtype=tf.float64, alg="philox")

    def heads(self, stream: int, counts: tf.Tensor) -> tf.Tensor:
        """int64 [R]: number of heads among `counts` (int64 [R]) coins."""
        counts, half = tf.cast(counts, tf.float64), tf.constant(0.5, tf.float64)
        return tf.random.stateless_binomial(
            tf.shape(counts), self._seed(stream), counts, half, tf.int64
        )


class _Layout(NamedTuple):
    """A block of N sentences in D documents; indices of sentences and words count over the block.

    Attributes:
      sentences: int64 [N + 1], ids before each sentence.
      words: int64 [W], where words start.
      words_before: int64 [N + 1], words before each sentence.
      document: int64 [N], which document a sentence is in.
      first, last: int64 [N], the sentences of that document: first to last - 1.
    """

    sentences: tf.Tensor
    words: tf.Tensor
    words_before: tf.Tensor
    document: tf.Tensor
    first: tf.Tensor
    last: tf.Tensor


class _Chunks(NamedTuple):
    """R chunks: sentences first to last - 1, then random_start to random_end - 1; int64 [R]."""

    first: tf.Tensor
    last: tf.Tensor
    random_start: tf.Tensor
    random_end: tf.Tensor


def make_pairs(
    text: TokenizedDocuments, objective: str, limit: int, short_seq_prob: float, draws: Draws
) -> Pairs:
    """The pairs of one copy of a block, in the order of the text; none is swapped.

    Args:
      text: the documents, with tensors; at least one sentence.
      objective: "sop", "nsp" or "none", see `segments.PairMaker`.
      limit: largest number of ids in A and B together.
      short_seq_prob: probability that a document gets a shorter target length, 0 to 1.
      draws: every random choice.

    Returns:
      The pairs, with tensors int64 [R].
    """
    text = split_long_sentences(text, limit)
    layout = _layout(text)
    num_documents = tf.shape(text.documents)[0] - 1
    backwards = draws.uniform(BACKWARDS, num_documents) < 0.5
    is_short = draws.uniform(IS_SHORT, num_documents) < short_seq_prob
    short = 2 + _below(draws.uniform(SHORT_TARGET, num_documents), limit - 1)
    target = tf.gather(tf.where(is_short, short, limit), layout.document)
    min_words = 2 if objective == "sop" else 1
    if objective == "nsp":
        chunks = _next_sentence_chunks(text, layout, target, draws)
    else:
        is_back = tf.gather(backwards, layout.document) & (objective == "sop")
        chunks = _chunks(layout, target, is_back, min_words)
    return _truncate(_divide(layout, chunks, objective, draws), limit, draws)


def _below(draws: tf.Tensor, limits: tf.Tensor | int) -> tf.Tensor:
    """int64: 0 <= i < limit from draws in [0, 1)."""
    return tf.cast(draws * tf.cast(limits, tf.float64), tf.int64)


def _bisect(
    ascending: tf.Tensor, values: tf.Tensor, low: tf.Tensor, high: tf.Tensor, side: str
) -> tf.Tensor:
    """bisect.bisect_left or _right(ascending, value, low, high) for each value."""
    found = tf.searchsorted(ascending, values, side=side, out_type=tf.int64)
    return tf.clip_by_value(found, low, high)


def _layout(text: TokenizedDocuments) -> _Layout:
    sentences, documents = text.sentences, text.documents
    starts_word = tf.tensor_scatter_nd_update(
        text.starts_word, sentences[:-1, None], tf.ones_like(sentences[:-1], tf.bool)
    )
    words = tf.where(starts_word)[:, 0]
    count = tf.shape(sentences, tf.int64)[0] - 1
    document = tf.searchsorted(documents, tf.range(count), side="right", out_type=tf.int64) - 1
    return _Layout(
        sentences,
        words,
        tf.searchsorted(words, sentences, out_type=tf.int64),
        document,
        tf.gather(documents, document),
        tf.gather(documents, document + 1),
    )


def _chunk_ends(layout: _Layout, target: tf.Tensor, min_words: int) -> tf.Tensor:
    """int64 [N]: end of the chunk that begins with each sentence, see PairMaker._chunk_end."""
    first, last = _numbers(layout), layout.last
    reach = layout.sentences[:-1] + target
    end = _bisect(layout.sentences[1:], reach, first, last, "left") + 1
    enough = layout.words_before[:-1] + min_words
    end = tf.maximum(end, _bisect(layout.words_before, enough, first + 1, last + 1, "left"))
    return tf.minimum(end, last)


def _chunk_starts(layout: _Layout, target: tf.Tensor, min_words: int) -> tf.Tensor:
    """int64 [N]: start of the chunk that ends with each sentence, see PairMaker._chunk_start."""
    first, end = layout.first, _numbers(layout) + 1
    reach = layout.sentences[1:] - target
    start = _bisect(layout.sentences[:-1], reach, first, end, "right") - 1
    enough = layout.words_before[1:] - min_words
    start = tf.minimum(start, _bisect(layout.words_before, enough, first, end, "right") - 1)
    return tf.maximum(start, first)


def _numbers(layout: _Layout) -> tf.Tensor:
    """int64 [N]: 0, 1, 2, ..."""
    return tf.range(tf.shape(layout.document, tf.int64)[0])


def _on_the_way(starts: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
    """Marks the sentences that are reached from the starts, step by step.

    Each round marks what is one jump behind a marked sentence; jumps double from round to round.

        following [2, 3, 3, 5, 5], starts [0]: the way is 0, 2, 3
        round 1: jump of one step  -> 0, 2;  round 2: of two steps -> 0, 2, 3;  then all jumps end

    Args:
      starts: bool [N].
      following: int64 [N], the sentence behind each; N: none.

    Returns:
      bool [N].
    """
    end = tf.shape(starts, tf.int64)[0]

    def go_on(known: tf.Tensor, jump: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        reached = tf.boolean_mask(jump, known)[:, None]
        known = tf.tensor_scatter_nd_update(known, reached, tf.ones_like(reached[:, 0], tf.bool))
        return tf.ensure_shape(known, [None]), tf.gather(jump, jump)

    some = tf.TensorShape([None])
    known, _ = tf.while_loop(
        lambda known, jump: tf.reduce_any(jump < end),
        go_on,
        (tf.concat([starts, [False]], axis=0), tf.concat([following, [end]], axis=0)),
        shape_invariants=(some, some),
    )
    return known[:-1]


def _chunks(layout: _Layout, target: tf.Tensor, backwards: tf.Tensor, min_words: int) -> _Chunks:
    """Chunks of whole documents; `backwards` (bool [N]) are divided from their end.

    A chunk is known by its first sentence; in a document that is divided backwards, by its last.
    """
    number, none = _numbers(layout), tf.shape(target, tf.int64)[0]
    end = _chunk_ends(layout, target, min_words)
    start = _chunk_starts(layout, target, min_words)
    is_end_of_way = tf.where(backwards, start == layout.first, end == layout.last)
    following = tf.where(is_end_of_way, none, tf.where(backwards, start - 1, end))
    is_start = number == tf.where(backwards, layout.last - 1, layout.first)
    chosen = tf.where(_on_the_way(is_start, following))[:, 0]
    first = tf.gather(tf.where(backwards, start, number), chosen)
    last = tf.gather(tf.where(backwards, number + 1, end), chosen)
    return _Chunks(first, last, tf.zeros_like(first), tf.zeros_like(first))


def _next_sentence_chunks(
    text: TokenizedDocuments, layout: _Layout, target: tf.Tensor, draws: Draws
) -> _Chunks:
    """Half of the chunks with a random segment; none where a document is alone in its block."""
    number, count = _numbers(layout), tf.shape(target)[0]
    sentences, none = layout.sentences, tf.cast(tf.shape(target)[0], tf.int64)
    end = _chunk_ends(layout, target, 1)
    continues = draws.uniform(CONTINUES, count) >= 0.5
    used = number + 1 + _below(draws.uniform(USED, count), end - number - 1)
    length = target - (tf.gather(sentences, used) - sentences[:-1])

    documents = text.documents
    with_text = tf.where(documents[1:] > documents[:-1])[:, 0]
    num_others = tf.shape(with_text, tf.int64)[0] - 1
    place = tf.searchsorted(with_text, layout.document, out_type=tf.int64)
    other = _below(draws.uniform(OTHER, count), num_others)
    other = tf.minimum(other + tf.cast(other >= place, tf.int64), num_others)
    other = tf.gather(with_text, other)
    other_first, other_last = tf.gather(documents, other), tf.gather(documents, other + 1)
    start = other_first + _below(draws.uniform(OTHER_START, count), other_last - other_first)
    goal = tf.gather(sentences, start) + tf.maximum(tf.constant(1, tf.int64), length)
    stop = _bisect(sentences[1:], goal, start, other_last, "left") + 1
    stop = tf.minimum(stop, other_last)

    last = tf.where(continues, end, used)
    following = tf.where(last == layout.last, none, last)
    is_start = (number == layout.first) & (num_others > 0)
    chosen = tf.where(_on_the_way(is_start, following))[:, 0]
    zero = tf.zeros_like(start)
    columns = (number, last, tf.where(continues, zero, start), tf.where(continues, zero, stop))
    return _Chunks(*(tf.gather(column, chosen) for column in columns))


def _divide(layout: _Layout, chunks: _Chunks, objective: str, draws: Draws) -> Pairs:
    """Chunks as pairs, see PairMaker._divide; a chunk of a single word is left out."""
    first, last, random_start, random_end = chunks
    sentences, words_before = layout.sentences, layout.words_before
    start, end = tf.gather(sentences, first), tf.gather(sentences, last)
    is_random = random_end > random_start
    drawn = draws.uniform(BORDER, tf.shape(first)[0])
    if objective == "none":
        border, kept = end, tf.ones_like(first, tf.bool)
    else:
        is_single = last - first == 1
        between = tf.gather(sentences, first + 1 + _below(drawn, last - first - 1))
        inner_words = tf.gather(words_before, last) - tf.gather(words_before, first) - 1
        word = tf.gather(words_before, first) + 1 + _below(drawn, inner_words)
        num_words = tf.shape(layout.words, tf.int64)[0]
        inside = tf.gather(layout.words, tf.minimum(word, num_words - 1))
        border = tf.where(is_random, end, tf.where(is_single, inside, between))
        kept = is_random | ~is_single | (inner_words > 0)
    start_b = tf.where(is_random, tf.gather(sentences, random_start), border)
    end_b = tf.where(is_random, tf.gather(sentences, random_end), end)
    columns = (start, border - start, start_b, end_b - start_b, tf.cast(is_random, tf.int64))
    return Pairs(*(tf.boolean_mask(column, kept) for column in columns))


def _truncate(pairs: Pairs, limit: int, draws: Draws) -> Pairs:
    """Both segments cut to the limit together, see `segments.truncated_lengths`."""
    length_a, length_b = pairs.length_a, pairs.length_b
    last_from_a = tf.cast(draws.uniform(LAST_FROM_A, tf.shape(length_a)[0]) < 0.5, tf.int64)
    excess = tf.maximum(tf.constant(0, tf.int64), length_a + length_b - limit)
    from_longer = tf.minimum(excess, tf.abs(length_a - length_b))
    cut_a = tf.where(length_a > length_b, from_longer, 0)
    cut_a += (excess - from_longer + last_from_a) // 2
    cut_b = excess - cut_a
    front_a, front_b = draws.heads(FRONT_A, cut_a), draws.heads(FRONT_B, cut_b)
    return Pairs(
        pairs.start_a + front_a,
        length_a - cut_a,
        pairs.start_b + front_b,
        length_b - cut_b,
        pairs.label,
    )


def shuffle(pairs: Pairs, draws: Draws) -> Pairs:
    """The pairs in random order."""
    order = tf.argsort(draws.uniform(ORDER, tf.shape(pairs.label)[0]), stable=True)
    columns = (getattr(pairs, field.name) for field in dataclasses.fields(pairs))
    return Pairs(*(tf.gather(column, order) for column in columns))


def pair_columns(text: TokenizedDocuments, pairs: Pairs) -> dict[str, tf.Tensor]:
    """The columns of R dynamic records, as `features.parse` would give them."""
    lengths = pairs.length_a + pairs.length_b
    splits = tf.concat([[0], tf.cumsum(lengths)], axis=0)
    row = tf.repeat(tf.range(tf.shape(lengths)[0]), lengths)  # Of each token.
    place = tf.range(splits[-1]) - tf.gather(splits, row)
    length_a = tf.gather(pairs.length_a, row)
    from_b = tf.gather(pairs.start_b, row) - length_a
    source = place + tf.where(place >= length_a, from_b, tf.gather(pairs.start_a, row))
    starts_segment = (place == 0) | (place == length_a)
    starts_word = tf.gather(text.starts_word, source) | starts_segment

    def rows(values: tf.Tensor) -> tf.RaggedTensor:
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    return {
        "token_ids": rows(tf.gather(text.ids, source)),
        "token_boundary": rows(tf.cast(starts_word, tf.int32)),
        "num_tokens_a": tf.cast(pairs.length_a, tf.int32)[:, None],
        "next_sentence_labels": tf.cast(pairs.label, tf.int32)[:, None],
    }
