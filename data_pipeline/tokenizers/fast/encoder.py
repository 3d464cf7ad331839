"""Encodes a corpus word by word: same ids as `Tokenizer.encode_flat`, but faster.

A corpus repeats the same words. Each word is tokenized once and then looked up in a table. Words
that the tokenizer may segment differently inside a sentence are never stored in that table; a
sentence with such a word is encoded as a whole, by the plain tokenizer.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from data_pipeline.tokenizers.base import FlatIds, Tokenizer, flatten
from data_pipeline.tokenizers.fast import unigram_words
from data_pipeline.tokenizers.fast.word_cache import WordCache, Words
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer, set_ideographs_apart

_MAX_CACHED_CHARACTERS = 32  # Longer WordPiece words are rarely repeated.


# Speed is the only reason for this folder: it is 1.6 to 2.1 times as fast as `encode_flat` on 12 MB
# of Wikipedia (CPU time, four runs on a busy machine; 2.7 times in an earlier measurement). A text
# of 1 MB, whose words are mostly new, is not encoded faster.
@functools.lru_cache(maxsize=1)  # Keeps the table of words; a process has one tokenizer.
def fast_encoder(tokenizer: Tokenizer) -> Callable[[Sequence[str]], FlatIds]:
    """`tokenizer.encode_flat`, but faster on a corpus: words are cached across calls.

    Threads, for example of a dataset, may share it. Unsupported kinds of tokenizers use their own
    `encode_flat`.
    """
    # The table is extended during lookups: two threads could give the same entry to two words.
    encode, lock = _encoder(tokenizer), threading.Lock()

    def encode_alone(texts: Sequence[str]) -> FlatIds:
        with lock:
            return encode(texts)

    return encode_alone


def _encoder(tokenizer: Tokenizer) -> Callable[[Sequence[str]], FlatIds]:
    if isinstance(tokenizer, WordPieceTokenizer):
        return _encoder_of_pieces(tokenizer)
    if isinstance(tokenizer, SentencePieceTokenizer):
        model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.content())
        if unigram_words.supports(model):
            return _encoder_of_unigrams(tokenizer, model)
        # Other models cannot encode words separately; only normalization is done for all texts.
        return lambda texts: flatten(tokenizer.encode_normalized(tokenizer.normalize_batch(texts)))
    return tokenizer.encode_flat


def _encoder_of_pieces(tokenizer: WordPieceTokenizer) -> Callable[[Sequence[str]], FlatIds]:
    """WordPiece with the table of words."""

    # WordPiece never looks beyond a word, so every word could be cached; only long ones are not.
    def encode_words(words: Words) -> tuple[FlatIds, np.ndarray]:
        texts = words.texts()
        short = [len(text) <= _MAX_CACHED_CHARACTERS for text in texts]
        rows = [tokenizer.encode(text) if keep else [] for text, keep in zip(texts, short)]
        return flatten(rows), np.array(short)

    # Sentences of any length are allowed, since no sums are rounded, unlike in unigram models.
    cache = WordCache(encode_words, tokenizer.encode_batch, sys.maxsize)
    spaces = bool(tokenizer.settings.space_chinese)
    # Chinese has no spaces: without this step, every clause would be a word, hardly ever repeated.
    return lambda texts: cache.encode(set_ideographs_apart(texts, spaces))


def _encoder_of_unigrams(
    tokenizer: SentencePieceTokenizer, model: sentencepiece_model_pb2.ModelProto
) -> Callable[[Sequence[str]], FlatIds]:
    unigrams = unigram_words.UnigramWords(model, tokenizer.processor)

    def encode_words(words: Words) -> tuple[FlatIds, np.ndarray]:
        encoded, sure = unigrams.encode(words)
        # The digit-comma rule concerns single pieces, so it can be applied to words in advance.
        return _split_again(encoded, tokenizer.resplit), sure

    cache = WordCache(
        encode_words, tokenizer.encode_normalized, unigram_words.MAX_SENTENCE_CHARACTERS
    )
    return lambda texts: cache.encode(tokenizer.normalize_batch(texts))


def _split_again(encoded: FlatIds, resplit: dict[int, list[int]]) -> FlatIds:
    """Replaces ids according to `resplit`: [7, 5 | 9], {5: [1, 2]} -> [7, 1, 2 | 9]."""
    # A Python loop over all ids would be too slow: it visits only the pieces to split.
    concerned = np.isin(encoded.ids, list(resplit))
    if not concerned.any():
        return encoded
    sizes = np.ones(len(encoded.ids), np.int64)
    sizes[concerned] = [len(resplit[i]) for i in encoded.ids[concerned].tolist()]
    # [7, 5, 9]: sizes [1, 2, 1], ends [0, 1, 3, 4]; the repeated 5 is overwritten.
    ends = np.concatenate([[0], np.cumsum(sizes)])
    ids = np.repeat(encoded.ids, sizes)
    for place in np.flatnonzero(concerned).tolist():
        ids[ends[place] : ends[place + 1]] = resplit[int(encoded.ids[place])]
    row_ends = ends[np.cumsum(encoded.lengths)]
    return FlatIds(ids, np.diff(row_ends, prepend=0))
