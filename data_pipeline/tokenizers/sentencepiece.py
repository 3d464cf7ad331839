"""SentencePiece, as the English ALBERTs use it, in Python; in graphs: graph_tokenizers.

Follows google-research/albert's `encode_pieces`: SentencePiece on normalised text, after which
a piece such as "2010," (a digit before a final comma) is split again.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import FlatIds, Tokenizer, TokenizerSettings, flatten
from data_pipeline.tokenizers.fast import unigram_words
from data_pipeline.tokenizers.fast.word_cache import WordCache, Words
from data_pipeline.tokenizers.normalization import normalize, normalize_many

WORD_MARK = "\u2581"
# google-research/albert's list has no ', = and >.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~£€')
_WORD_CHARACTERS = _PUNCTUATION | frozenset(string.ascii_letters)


def is_word_start_piece(piece: str) -> bool:
    """google-research/albert's test for a piece that starts a word.

    A piece starts a word when it begins with the word mark or "<", when it is one listed
    punctuation character, or when any character is neither an ASCII letter nor listed punctuation.
    So digits, apostrophes and non-Latin pieces are words of their own.
    """
    if piece.startswith((WORD_MARK, "<")) or piece in _PUNCTUATION:
        return True
    return not _WORD_CHARACTERS.issuperset(piece)


class SentencePieceTokenizer(Tokenizer):
    """Python face; see `Tokenizer`."""

    STORED_NAME = "spiece.model"
    SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")

    def __init__(self, vocab_file: str, lower: bool = True, rules: str = "google"):
        """Args: lower, rules: see TokenizerSettings."""
        super().__init__(vocab_file, TokenizerSettings(lower, rules))
        self.resplit = self._resplit_table()
        self._resplit_ids = frozenset(self.resplit)
        self._word_cache: WordCache | None = None

    def _load(self, content: bytes) -> list[str]:
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            loaded = bool(content) and self._processor.LoadFromSerializedProto(content)
        except RuntimeError:
            loaded = False
        if not loaded:
            raise UserError(
                f"{self.vocab_file} is not a SentencePiece model (a file such as spiece.model or "
                "30k-clean.model; the .vocab file beside it will not do; a WordPiece vocabulary "
                "ends in .txt)."
            )
        return [self._processor.IdToPiece(i) for i in range(self._processor.GetPieceSize())]

    def _starts_word(self, piece: str) -> bool:
        return is_word_start_piece(piece)

    def _resplit_table(self) -> dict[int, list[int]]:
        """Ids that replace each piece of the vocabulary that the digit-comma rule splits again."""
        if self.settings.rules == "plain":
            return {}
        return {
            i: [self._processor.PieceToId(part) for part in self._split_digit_comma(piece)]
            for i, piece in enumerate(self.pieces)
            if is_digit_comma(piece)
        }

    def _split_digit_comma(self, piece: str) -> list[str]:
        """Pieces of, say, "2010,"."""
        parts = self._processor.EncodeAsPieces(legacy_without_comma(piece))
        if self.settings.rules == "huggingface" and not piece.startswith(WORD_MARK):
            parts = without_word_mark(parts)
        return [*parts, ","]

    def _normalize(self, text: str) -> str:
        return normalize(text, self.lower, self.settings.rules == "huggingface")

    def encode(self, text: str) -> list[int]:
        return self._split_again(self._processor.EncodeAsIds(self._normalize(text)))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many strings; faster than one by one."""
        return self._encode_normalized([self._normalize(text) for text in texts])

    def encode_flat(self, texts: Sequence[str]) -> FlatIds:
        if self._word_cache is None:
            self._word_cache = self._make_word_cache()
        joins_quotes = self.settings.rules == "huggingface"
        return self._word_cache.encode(normalize_many(texts, self.lower, joins_quotes))

    def _make_word_cache(self) -> WordCache:
        model = sentencepiece_model_pb2.ModelProto.FromString(self.content())
        if not unigram_words.supports(model):
            return WordCache(_nothing_sure, self._encode_normalized, 0)
        words = unigram_words.UnigramWords(model, self._processor)

        def encode_words(some: Words) -> tuple[FlatIds, np.ndarray]:
            encoded, sure = words.encode(some)
            return self._split_again_flat(encoded), sure

        return WordCache(
            encode_words, self._encode_normalized, unigram_words.MAX_SENTENCE_CHARACTERS
        )

    def _encode_normalized(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._split_again(ids) for ids in self._processor.encode(texts, num_threads=1)]

    def _split_again_flat(self, encoded: FlatIds) -> FlatIds:
        concerned = np.isin(encoded.ids, list(self.resplit))
        if not concerned.any():
            return encoded
        sizes = np.ones(len(encoded.ids), np.int64)
        sizes[concerned] = [len(self.resplit[i]) for i in encoded.ids[concerned].tolist()]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        ids = np.repeat(encoded.ids, sizes)
        for place in np.flatnonzero(concerned).tolist():
            ids[ends[place] : ends[place + 1]] = self.resplit[int(encoded.ids[place])]
        row_ends = ends[np.cumsum(encoded.lengths)]
        return FlatIds(ids, np.diff(row_ends, prepend=0))

    def _split_again(self, ids: list[int]) -> list[int]:
        if self._resplit_ids.isdisjoint(ids):
            return ids
        return [new for i in ids for new in self.resplit.get(i, (i,))]

    def encode_pieces(self, text: str) -> list[str]:
        """Pieces of one string; text outside the vocabulary is kept as it is written."""
        pieces = []
        for piece in self._processor.EncodeAsPieces(self._normalize(text)):
            is_split = self._processor.PieceToId(piece) in self._resplit_ids
            pieces.extend(self._split_digit_comma(piece) if is_split else [piece])
        return pieces


def _nothing_sure(words: Words) -> tuple[FlatIds, np.ndarray]:
    return flatten([[]] * len(words.starts)), np.zeros(len(words.starts), bool)


def is_digit_comma(piece: str) -> bool:
    """Whether google-research/albert's `encode_pieces` splits this piece again."""
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def legacy_without_comma(piece: str) -> str:
    """What google-research/albert encodes again; the new word mark in front stays.

    The reference means to remove that mark, but compares a string with bytes (issue 249); the
    published models were trained with the mark.
    """
    return piece[:-1].replace(WORD_MARK, "")


def without_word_mark(parts: list[str]) -> list[str]:
    """The parts without the word mark at their beginning, as Hugging Face's AlbertTokenizer has
    them.
    """
    first = parts[0].removeprefix(WORD_MARK)
    return [first, *parts[1:]] if first else parts[1:]
