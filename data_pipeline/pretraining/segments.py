"""Divides documents into pairs of segments, for sentence-order or next-sentence prediction.

Follows google-research/albert's create_instances_from_document, except that sentence-order pairs
never mix text of two documents: a chunk of one sentence is divided at a word inside it.

Segments are ranges of TokenizedDocuments.ids; ids are not copied here.

    a document of sentences with 40, 50, 30, 60, 20 ids, a target of 100 ids
    chunks     40 50 30 | 60 20               closed by the sentence that reaches the target
    borders    40 / 50 30 | 60 / 20           a random border between two sentences
    pairs      (40, 80), (60, 20)             truncated to the limit in total; half are swapped
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from data_pipeline.pretraining.tokenized import TokenizedDocuments, split_long_sentences

SENTENCE_OBJECTIVES = ("sop", "nsp", "none")
ONE_WORD = "chunk of a single word"
ALONE = "next sentence: no other document beside it"


@dataclasses.dataclass(frozen=True)
class Pairs:
    """R pairs of segments; every array is int64 [R]."""

    start_a: np.ndarray  # Segment A is ids[start_a:start_a + length_a].
    length_a: np.ndarray
    start_b: np.ndarray
    length_b: np.ndarray  # 0 if there is no B.
    label: np.ndarray  # 0 if B follows A; 1 if swapped, or if B is from another document.

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: np.ndarray | slice) -> Pairs:
        """The pairs with these numbers, in this order."""
        return Pairs(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


def swapped(pairs: Pairs, rng: np.random.Generator) -> Pairs:
    """Swaps A and B in half of the pairs, at random, and sets their label to 1."""
    swap = rng.random(len(pairs)) < 0.5
    return Pairs(
        np.where(swap, pairs.start_b, pairs.start_a),
        np.where(swap, pairs.length_b, pairs.length_a),
        np.where(swap, pairs.start_a, pairs.start_b),
        np.where(swap, pairs.length_a, pairs.length_b),
        swap.astype(np.int64),
    )


def _below(draws: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Converts draws in [0, 1) to integers 0 <= i < limit."""
    return (draws * limits).astype(np.int64)


def target_lengths(
    rng: np.random.Generator, count: int, limit: int, short_seq_prob: float
) -> list[int]:
    """Target lengths of `count` chunks: `limit` ids, or with probability `short_seq_prob` a length
    drawn uniformly from 2 to `limit`.
    """
    is_short = rng.random(count) < short_seq_prob
    short = 2 + _below(rng.random(count), np.array(limit - 1))
    return np.where(is_short, short, limit).tolist()


def truncated_lengths(
    length_a: np.ndarray, length_b: np.ndarray, limit: int, last_from_a: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths (int64 [R]) of segments after truncation to `limit` ids in total: the longer one
    loses ids first, then both in turn. An odd last id is taken from A if `last_from_a` (bool [R]).

        lengths 10 and 4, limit 8 -> 4, 4; limit 7 -> 3, 4 if last_from_a, else 4, 3
    """
    # If the odd last id were always taken from B, as in the reference, lengths would reveal the
    # order of segments that are swapped later: (63, 62) ids or (62, 63).
    excess = np.maximum(0, length_a + length_b - limit)
    from_longer = np.minimum(excess, abs(length_a - length_b))
    rest = excess - from_longer
    cut_a = np.where(length_a > length_b, from_longer, 0) + (rest + last_from_a) // 2
    return length_a - cut_a, length_b - (excess - cut_a)


class PairMaker:
    """Makes the pairs of a block of documents; copies of the text get different pairs.

    Args:
      tokenized: the documents.
      objective: "sop": both segments of one chunk, swapped with probability 1/2; "nsp": B from
        another document with probability 1/2; "none": the whole chunk as A.
      max_num_tokens: largest number of ids in A and B together.
      short_seq_prob: probability that a document gets a shorter target length.
      swap: whether to swap sentence-order pairs; otherwise they are left in order.
      divide: whether to divide chunks into segments; otherwise each chunk is A as a whole.
    """

    def __init__(
        self,
        tokenized: TokenizedDocuments,
        objective: str,
        max_num_tokens: int,
        short_seq_prob: float,
        swap: bool = True,
        divide: bool = True,
    ) -> None:
        # Long sentences are split; segments are ranges of these ids.
        tokenized = self.tokenized = split_long_sentences(tokenized, max_num_tokens)
        self._objective, self._limit = objective, max_num_tokens
        self._short_seq_prob = short_seq_prob
        self._swaps, self._divides = swap and objective == "sop", divide
        # Two segments in order need a border between two words.
        self._min_words = 2 if objective == "sop" else 1
        self._sentences = tokenized.sentences
        starts_word = tokenized.starts_word.copy()
        starts_word[self._sentences[:-1]] = True
        self._words = np.flatnonzero(starts_word)
        # Number of words before each sentence.
        self._words_before = np.searchsorted(self._words, self._sentences)
        # Lists for bisect, which is faster than searchsorted for one value.
        self._ends = self._sentences[1:].tolist()
        self._starts = self._sentences[:-1].tolist()
        self._words_list = self._words_before.tolist()
        self._documents = list(itertools.pairwise(tokenized.documents.tolist()))
        self._has_pair = np.zeros(len(self._documents), bool)
        self._with_text = [i for i, (first, last) in enumerate(self._documents) if last > first]

    def make(self, rng: np.random.Generator) -> tuple[Pairs, collections.Counter]:
        """The pairs of one copy in the order of the text, and skipped chunks by reason."""
        skipped: collections.Counter = collections.Counter()
        if self._objective == "nsp":
            chunks = list(self._next_sentence_chunks(rng, skipped))
        else:
            backwards = rng.random(len(self._documents)) < 0.5
            chunks = list(self._chunks(self._targets(rng), backwards & (self._objective == "sop")))
        rows = np.array(chunks, np.int64).reshape(-1, 5)
        document, first, last, random_start, random_end = rows.T
        pairs, kept = self._divide(first, last, random_start, random_end, rng)
        skipped[ONE_WORD] += int(np.count_nonzero(~kept))
        self._has_pair[document[kept]] = True
        if not self._divides:  # Whole chunks become segment A.
            start, end = self._sentences[first[kept]], self._sentences[last[kept]]
            nothing = np.zeros_like(start)
            return Pairs(start, end - start, end, nothing, nothing), +skipped
        return self._finished(pairs.take(kept), rng), +skipped

    def divide_documents(self, rng: np.random.Generator) -> Pairs:
        """One pair per document, where each document is a whole chunk of an earlier PairMaker."""
        first, last = np.array(self._documents, np.int64).T
        nothing = np.zeros_like(first)
        pairs, _ = self._divide(first, last, nothing, nothing, rng)
        return self._finished(pairs, rng)

    @property
    def documents_without_pair(self) -> int:
        """Number of documents without a pair in any copy so far."""
        return int(np.count_nonzero(~self._has_pair))

    def _targets(self, rng: np.random.Generator) -> list[int]:
        """The number of ids after which a chunk is closed, for each document."""
        return target_lengths(rng, len(self._documents), self._limit, self._short_seq_prob)

    def _chunk_end(self, first: int, last: int, target: int) -> int:
        """End of the chunk that starts at sentence `first`, with `target` ids and enough words.

        Sentences of 4, 5, 2 ids: target 9 -> 2, target 10 -> 3.
        """
        end = bisect.bisect_left(self._ends, self._starts[first] + target, first, last) + 1
        if self._min_words > 1:
            enough = self._words_list[first] + self._min_words
            end = max(end, bisect.bisect_left(self._words_list, enough, first + 1, last + 1))
        return min(end, last)

    def _chunk_start(self, first: int, last: int, target: int) -> int:
        """Start of the chunk that ends before `last`, with `target` ids and enough words."""
        reach = self._ends[last - 1] - target
        start = bisect.bisect_right(self._starts, reach, first, last) - 1
        if self._min_words > 1:
            enough = self._words_list[last] - self._min_words
            start = min(start, bisect.bisect_right(self._words_list, enough, first, last) - 1)
        return max(start, first)

    def _chunks(
        self, targets: list[int], backwards: np.ndarray
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """(document, first sentence, end sentence, 0, 0 for no random segment) of each chunk."""
        # The sentence that reaches the target closes a chunk, and it is longer than most. If it
        # were always the last one, B would tend to be longer than A, and lengths would reveal the
        # order of 54.7 % of the pairs. So some documents are divided backwards from their end.
        for document, ((first, last), target) in enumerate(zip(self._documents, targets)):
            if backwards[document]:
                borders = [last]
                while borders[-1] > first:
                    borders.append(self._chunk_start(first, borders[-1], target))
                borders.reverse()
            else:
                borders = [first]
                while borders[-1] < last:
                    borders.append(self._chunk_end(borders[-1], last, target))
            for start, end in itertools.pairwise(borders):
                yield document, start, end, 0, 0

    def _next_sentence_chunks(
        self, rng: np.random.Generator, skipped: collections.Counter
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """(document, first sentence, end sentence, start and end of a random segment) of each
        chunk. Half of the chunks have a random segment from another document; the sentences that
        such a chunk does not use begin the next one.
        """
        targets = self._targets(rng)
        own = {document: place for place, document in enumerate(self._with_text)}
        for document, place in own.items():
            first, last = self._documents[document]
            if len(self._with_text) < 2:
                skipped[ALONE] += 1
                continue
            # A chunk takes at most four draws and uses at least one sentence. Drawing for all
            # sentences at once is faster, and makes a document's draws independent of others.
            draws = iter(rng.random(4 * (last - first)).tolist())
            while first < last:
                end = self._chunk_end(first, last, targets[document])
                if next(draws) >= 0.5:
                    yield document, first, end, 0, 0
                    first = end
                    continue
                size = end - first
                used = first + 1 + (int(next(draws) * (size - 1)) if size > 1 else 0)
                # The length of B is the part of the target that A leaves.
                length = targets[document] - (self._starts[used - 1] - self._starts[first])
                length -= self._ends[used - 1] - self._starts[used - 1]
                other = int(next(draws) * (len(self._with_text) - 1))
                # Drawn from one number less than there are documents, to skip the one at `place`.
                other_first, other_last = self._documents[self._with_text[other + (other >= place)]]
                start = other_first + int(next(draws) * (other_last - other_first))
                goal = self._starts[start] + max(1, length)
                stop = bisect.bisect_left(self._ends, goal, start, other_last) + 1
                yield document, first, used, start, min(stop, other_last)
                first = used

    def _divide(
        self,
        first: np.ndarray,
        last: np.ndarray,
        random_start: np.ndarray,
        random_end: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[Pairs, np.ndarray]:
        """Chunks as pairs; bool [R], False if a border is needed but a chunk has a single word."""
        # The border is uniform among those between sentences, or between a single sentence's words.
        start, end = self._sentences[first], self._sentences[last]
        is_random = random_end > random_start
        draws = rng.random(len(first))
        if self._objective == "none":
            border, kept = end, np.ones(len(first), bool)
        else:
            is_single = last - first == 1
            between = self._sentences[first + 1 + _below(draws, last - first - 1)]
            inner_words = self._words_before[last] - self._words_before[first] - 1
            word = self._words_before[first] + 1 + _below(draws, inner_words)
            inside = self._words[np.minimum(word, len(self._words) - 1)]
            border = np.where(is_random, end, np.where(is_single, inside, between))
            kept = is_random | ~is_single | (inner_words > 0)
        start_b = np.where(is_random, self._sentences[random_start], border)
        end_b = np.where(is_random, self._sentences[random_end], end)
        label = is_random.astype(np.int64)
        return Pairs(start, border - start, start_b, end_b - start_b, label), kept

    def _finished(self, pairs: Pairs, rng: np.random.Generator) -> Pairs:
        """Swaps pairs, if that is enabled, and truncates both segments to the limit in total; each
        id is cut from the front or back.
        """
        if self._swaps:
            pairs = swapped(pairs, rng)
        length_a, length_b = truncated_lengths(
            pairs.length_a, pairs.length_b, self._limit, rng.random(len(pairs)) < 0.5
        )
        front_a = rng.binomial(pairs.length_a - length_a, 0.5)
        front_b = rng.binomial(pairs.length_b - length_b, 0.5)
        return Pairs(
            pairs.start_a + front_a, length_a, pairs.start_b + front_b, length_b, pairs.label
        )
