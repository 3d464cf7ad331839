"""Documents as ids: one flat array with the boundaries of sentences and documents.

two documents [[5 6] [7]] and [[8 9]]
ids        5 6 7 8 9
sentences  0 2 3 5      boundaries among the ids
documents  0 2 3        boundaries among the sentences
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from data_pipeline.tokenizers.base import FlatIds, Tokenizer


@dataclasses.dataclass(frozen=True)
class TokenizedDocuments:
    """Many documents, concatenated."""

    ids: np.ndarray  # int32 [T], the ids of all sentences.
    # int64 [N + 1], sentence n is ids[sentences[n]:sentences[n + 1]]; none is empty.
    sentences: np.ndarray
    # int64 [D + 1], document d has sentences documents[d] to documents[d + 1] - 1.
    documents: np.ndarray
    starts_word: np.ndarray  # bool [T], whether a piece starts a word.

    @property
    def num_documents(self) -> int:
        """D, including documents without ids."""
        return len(self.documents) - 1

    @property
    def num_sentences(self) -> int:
        """N."""
        return len(self.sentences) - 1


def _boundaries(lengths: np.ndarray) -> np.ndarray:
    """int64 [R] -> int64 [R + 1]: [2, 3] -> [0, 2, 5]."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def tokenize(
    documents: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    encode: Callable[[Sequence[str]], FlatIds] | None = None,
) -> TokenizedDocuments:
    """Tokenizes documents (lists of sentences; those without ids are left out). `encode` gives the
    same ids as the tokenizer's `encode_flat`, but faster; None: that method.
    """
    encode = encode or tokenizer.encode_flat
    sizes = np.fromiter(map(len, documents), np.int64, len(documents))
    encoded = encode([sentence for document in documents for sentence in document])
    has_ids = encoded.lengths > 0
    kept_before = np.concatenate([[0], np.cumsum(has_ids)])
    return TokenizedDocuments(
        encoded.ids,
        _boundaries(encoded.lengths[has_ids]),
        kept_before[_boundaries(sizes)],
        tokenizer.is_word_start[encoded.ids],
    )


def concatenate(parts: Sequence[TokenizedDocuments]) -> TokenizedDocuments:
    """The documents of all parts, in order."""
    return TokenizedDocuments(
        np.concatenate([part.ids for part in parts]),
        _boundaries(np.concatenate([np.diff(part.sentences) for part in parts])),
        _boundaries(np.concatenate([np.diff(part.documents) for part in parts])),
        np.concatenate([part.starts_word for part in parts]),
    )


def split_long_sentences(tokenized: TokenizedDocuments, limit: int) -> TokenizedDocuments:
    """Cuts sentences to at most `limit` ids, before the start of a word if possible.

    A sentence of 7 ids whose words start at 0, 2, 5; limit 3: sentences [0, 7] -> [0, 2, 5, 7].
    """
    sentences = tokenized.sentences
    too_long = np.flatnonzero(np.diff(sentences) > limit)
    if not len(too_long):
        return tokenized
    cuts, owners = [], []
    for sentence in too_long.tolist():
        start, end = int(sentences[sentence]), int(sentences[sentence + 1])
        while end - start > limit:
            words = np.flatnonzero(tokenized.starts_word[start + 1 : start + limit + 1])
            start += int(words[-1]) + 1 if len(words) else limit
            cuts.append(start)
            owners.append(sentence)
    places = np.array(owners) + 1
    return dataclasses.replace(
        tokenized,
        sentences=np.insert(sentences, places, cuts),
        documents=tokenized.documents + np.searchsorted(places, tokenized.documents, "right"),
    )
