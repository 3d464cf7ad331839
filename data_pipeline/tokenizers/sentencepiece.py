"""SentencePiece as the English ALBERTs use it, in Python; for TensorFlow graphs see graph.py.

Follows google-research/albert's `encode_pieces`: SentencePiece tokenizes normalized text, and a
piece such as "2010," (a digit before a final comma) is then split again.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Sequence

import sentencepiece

from data_pipeline.errors import UserError
from data_pipeline.tokenizers import file_names
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.normalization import normalize, normalize_many

WORD_MARK = "\u2581"
# google-research/albert's list does not contain ', = and >.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~£€')
_WORD_CHARACTERS = _PUNCTUATION | frozenset(string.ascii_letters)


def is_word_start_piece(piece: str) -> bool:
    """google-research/albert's test for a piece that starts a word."""
    # Special pieces such as <unk> begin with "<". The last line makes digits, apostrophes and
    # non-Latin pieces separate words.
    if piece.startswith((WORD_MARK, "<")) or piece in _PUNCTUATION:
        return True
    return not _WORD_CHARACTERS.issuperset(piece)


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model with google-research/albert's rules around it; see `Tokenizer`.

    Attributes:
      processor: the SentencePieceProcessor of the model.
      resplit: maps the id of each piece that the digit-comma rule splits to the ids replacing it.
    """

    STORED_NAME = file_names.SENTENCEPIECE
    SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")

    def _prepare(self) -> None:
        self.resplit: dict[int, list[int]] = {}
        if self.settings.rules != "plain":
            self.resplit = {
                i: [self.processor.PieceToId(part) for part in self._split_digit_comma(piece)]
                for i, piece in enumerate(self.pieces)
                if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
            }

    @classmethod
    def resolve(cls, settings: TokenizerSettings) -> TokenizerSettings:
        if settings.space_chinese:
            raise UserError(
                "space_chinese=true (--space_chinese) is for WordPiece vocabularies, which "
                "end in .txt, not for SentencePiece models. Leave it out."
            )
        strips = settings.strip_accents is not False
        return super().resolve(dataclasses.replace(settings, strip_accents=strips))

    def _load(self, content: bytes) -> list[str]:
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            loaded = bool(content) and self.processor.LoadFromSerializedProto(content)
        except RuntimeError:
            loaded = False
        if not loaded:
            raise UserError(
                f"{self.vocab_file} is not a SentencePiece model (a file such as spiece.model or "
                "30k-clean.model; the .vocab file next to it will not do; a WordPiece vocabulary "
                "ends in .txt)."
            )
        return [self.processor.IdToPiece(i) for i in range(self.processor.GetPieceSize())]

    def _starts_word(self, piece: str) -> bool:
        return is_word_start_piece(piece)

    def _split_digit_comma(self, piece: str) -> list[str]:
        """The pieces that replace a piece such as "2010,"."""
        # SentencePiece adds a word mark in front, which is kept even if the piece had none. The
        # reference intends to remove it, but compares a string with bytes (issue 249); the
        # published models were trained with the mark.
        parts = self.processor.EncodeAsPieces(piece[:-1].replace(WORD_MARK, ""))
        if self.settings.rules == "huggingface" and not piece.startswith(WORD_MARK):
            # As AlbertTokenizer: ["▁20", "10"] -> ["20", "10"]; ["▁", "2010"] -> ["2010"].
            first = parts[0].removeprefix(WORD_MARK)
            parts = [first, *parts[1:]] if first else parts[1:]
        return [*parts, ","]

    def _normalize(self, text: str) -> str:
        return normalize(text, *self.settings.cleaning)

    def encode(self, text: str) -> list[int]:
        return self._split_again(self.processor.EncodeAsIds(self._normalize(text)))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many strings at once, which is faster."""
        return self.encode_normalized([self._normalize(text) for text in texts])

    def normalize_batch(self, texts: Sequence[str]) -> list[str]:
        """Normalizes many strings at once, which is faster."""
        return normalize_many(texts, *self.settings.cleaning)

    def encode_normalized(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of strings that are already normalized."""
        return [self._split_again(ids) for ids in self.processor.encode(texts, num_threads=1)]

    def _split_again(self, ids: list[int]) -> list[int]:
        if self.resplit.keys().isdisjoint(ids):
            return ids
        return [new for i in ids for new in self.resplit.get(i, (i,))]

    def encode_pieces(self, text: str) -> list[str]:
        """Pieces of one string; text outside the vocabulary is kept as written."""
        pieces: list[str] = []
        for piece in self.processor.EncodeAsPieces(self._normalize(text)):
            is_split = self.processor.PieceToId(piece) in self.resplit
            pieces.extend(self._split_digit_comma(piece) if is_split else [piece])
        return pieces
