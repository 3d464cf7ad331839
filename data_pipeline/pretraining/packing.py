"""Packs whole sentences of consecutive documents into records: RoBERTa's FULL-SENTENCES.

Documents much shorter than a record would leave it nearly empty. Here a record holds as many
consecutive sentences as fit, across documents, with [SEP] at the end of each document:

  [CLS] the end of a document [SEP] a short document [SEP] the beginning of another [SEP]
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Iterator

import numpy as np

from data_pipeline.pretraining.segments import Pairs, target_lengths
from data_pipeline.pretraining.tokenized import TokenizedDocuments, split_long_sentences


def with_separators(tokenized: TokenizedDocuments, sep_id: int) -> TokenizedDocuments:
    """Appends [SEP] to the last sentence of each document.

    Documents [[5 6] [7]] [[8]] -> [[5 6] [7 SEP]] [[8 SEP]].
    """
    first, last = tokenized.documents[:-1], tokenized.documents[1:]
    has_text = last > first
    ends = tokenized.sentences[last[has_text]]  # Ends of documents among the ids: [3, 4] above.
    starts_word = tokenized.starts_word.copy()
    starts_word[tokenized.sentences[first[has_text]]] = True
    # A boundary moves by the number of [SEP]s before it: sentences [0, 2, 3, 4] -> [0, 2, 4, 6].
    return TokenizedDocuments(
        np.insert(tokenized.ids, ends, sep_id),
        tokenized.sentences + np.searchsorted(ends, tokenized.sentences, side="right"),
        tokenized.documents,
        np.insert(starts_word, ends, True),
    )


class DocumentPacker:
    """Makes packed records from a block of documents; copies differ. See `PairMaker`.
    `max_num_tokens` includes the [SEP] between documents.
    """

    documents_without_pair = 0  # Every document is in a record.

    def __init__(
        self, tokenized: TokenizedDocuments, sep_id: int, max_num_tokens: int, short_seq_prob: float
    ) -> None:
        self.tokenized = with_separators(split_long_sentences(tokenized, max_num_tokens), sep_id)
        self._limit, self._short_seq_prob = max_num_tokens, short_seq_prob
        sentences = self.tokenized.sentences
        self._starts = sentences[:-1].tolist()
        # Without the [SEP] at a document's end, since every record ends with a [SEP] anyway.
        self._ends = (sentences[1:] - (self.tokenized.ids[sentences[1:] - 1] == sep_id)).tolist()

    def make(self, rng: np.random.Generator) -> tuple[Pairs, collections.Counter]:
        """The records of one copy in the order of the text, each a single segment A."""
        rows = np.array(list(self._records(rng)), np.int64).reshape(-1, 2)
        start, end = rows.T
        nothing = np.zeros_like(start)
        return Pairs(start, end - start, end, nothing, nothing), collections.Counter()

    def _records(self, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
        """Start and end of each record in the ids."""
        # The first record has a random length, so that copies of the text are cut differently.
        count = len(self._starts)
        # One target per sentence is enough: each record takes at least one sentence.
        targets = target_lengths(rng, count, self._limit, self._short_seq_prob)
        targets[:1] = target_lengths(rng, 1, self._limit, 1.0)
        first = 0
        for target in targets:
            if first == count:
                return
            last = bisect.bisect_right(self._ends, self._starts[first] + target, first)
            # A sentence longer than its target, but not than the limit, is a record of its own.
            last = max(last, first + 1)
            yield self._starts[first], self._ends[last - 1]
            first = last
