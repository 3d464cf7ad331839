"""Makes examples from documents, for records, training text and datasets of text.

text -> ids -> pairs of segments -> columns (masked, if the records are static) -> bytes
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator

import numpy as np

from data_pipeline.pretraining import tokenized
from data_pipeline.pretraining.columns import ColumnMaker, RecordColumns
from data_pipeline.pretraining.packing import DocumentPacker
from data_pipeline.pretraining.segments import PairMaker, Pairs
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.records import example_bytes
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.fast.encoder import fast_encoder

_EXAMPLES_AT_ONCE = 1024  # Static masks are drawn for this many at a time, and depend on it.
_CHARACTERS_AT_ONCE = 1 << 21


class BlockExamples:
    """The examples of a block of documents (lists of sentences), copy by copy; copies differ.
    `place`: the numbers of the group and of the block. With `fast` each word is tokenized once
    (tokenizers/fast), with the same ids.
    """

    def __init__(
        self,
        documents: Iterable[list[str]],
        settings: PretrainingSettings,
        tokenizer: Tokenizer,
        place: tuple[int, int],
        fast: bool = True,
    ) -> None:
        self.text = _tokenize(documents, tokenizer, fast)  # The documents as ids.
        self._pairs = _pair_maker(self.text, settings, tokenizer)
        self._columns = ColumnMaker(settings, tokenizer)
        self._seed = (settings.seed, *place)
        self._skipped: collections.Counter = collections.Counter()

    @property
    def ids(self) -> np.ndarray:
        """int32 [T]: ids, of which segments are ranges, with [SEP] between packed documents."""
        return self._pairs.tokenized.ids

    @property
    def skipped(self) -> collections.Counter:
        """Number of chunks and documents without an example in the copies so far, by reason."""
        alone = {"document without a pair": self._pairs.documents_without_pair}
        return +(self._skipped + collections.Counter(alone))

    def copy(self, number: int) -> tuple[Pairs, Iterator[RecordColumns]]:
        """The shuffled pairs of a copy, and an iterator over their columns, some at a time."""
        # All random draws depend only on this block and copy, so that the bytes are the same
        # wherever and whenever they are made.
        rng = np.random.default_rng((*self._seed, number))
        pairs, skipped = self._pairs.make(rng)
        self._skipped.update(skipped)
        pairs = pairs.take(rng.permutation(len(pairs)))
        size = _EXAMPLES_AT_ONCE
        parts = (pairs.take(slice(start, start + size)) for start in range(0, len(pairs), size))
        return pairs, (self._columns.make(self._pairs.tokenized, part, rng) for part in parts)

    def serialized(self, number: int) -> list[bytes]:
        """The examples of a copy as serialized tf.train.Examples, as records hold them."""
        _, parts = self.copy(number)
        return [
            example for made in parts for example in example_bytes.encode_examples(made.columns)
        ]


def _tokenize(
    documents: Iterable[list[str]], tokenizer: Tokenizer, fast: bool
) -> TokenizedDocuments:
    """Ids of documents, a few at a time: ids take less memory than text."""
    encode = fast_encoder(tokenizer) if fast else tokenizer.encode_flat
    parts: list[TokenizedDocuments] = []
    some: list[list[str]] = []
    size = 0
    for document in documents:
        some.append(document)
        size += sum(map(len, document))
        if size >= _CHARACTERS_AT_ONCE:
            parts.append(tokenized.tokenize(some, tokenizer, encode))
            some, size = [], 0
    parts.append(tokenized.tokenize(some, tokenizer, encode))
    return tokenized.concatenate(parts)


def _pair_maker(
    text: TokenizedDocuments, settings: PretrainingSettings, tokenizer: Tokenizer
) -> PairMaker | DocumentPacker:
    lengths = settings.max_num_tokens, settings.short_seq_prob
    if settings.pack_documents:
        return DocumentPacker(text, tokenizer.sep_id, *lengths)
    # Dynamic records are swapped when they are read, and dynamic segments are also divided then.
    swap, divide = settings.masking == "static", settings.segments == "fixed"
    return PairMaker(text, settings.sentence_objective, *lengths, swap=swap, divide=divide)
