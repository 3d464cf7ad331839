"""WordPiece as the Chinese ALBERTs and BERT use it, in Python; for TensorFlow graphs see graph.py.

Follows google-research/albert's BasicTokenizer and WordpieceTokenizer: text is cleaned, split
at spaces, at punctuation and around every CJK ideograph, and each word is divided into the longest
pieces that match.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
import unicodedata
from collections.abc import Sequence

import numpy as np

from data_pipeline.errors import UserError, warn_once
from data_pipeline.tokenizers import file_names
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.normalization import (
    REPLACEMENT,
    SURROGATES,
    UNSTABLE_RANGES,
    Ranges,
    python_class,
    ranges_where,
)

CONTINUATION = "##"
BYTE_ORDER_MARK = "\ufeff"
# Longer words are unknown. The limits of google-research/albert, and of Hugging Face.
MAX_WORD_CHARACTERS, _MAX_OF_HUGGINGFACE = 200, 100
_DROP, _KEEP, _SPACE, _APART = range(4)
_SIZES = np.array([0, 1, 1, 3], np.uint8)  # Characters in place of one, by action.
_ASCII_PUNCTUATION = ((33, 47), (58, 64), (91, 96), (123, 126))
IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


@functools.cache
def space_ranges() -> Ranges:
    """Code points that become spaces."""

    def is_space(character: str) -> bool:
        return character in "\t\n\r" or unicodedata.category(character) in ("Zs", "Zl", "Zp")

    return ranges_where(is_space)


@functools.cache
def dropped_ranges() -> Ranges:
    """Control and format characters, U+FFFD, and what differs between Unicode versions."""

    def is_control(character: str) -> bool:
        return unicodedata.category(character) in ("Cc", "Cf") and character not in "\t\n\r"

    replacement = ord(REPLACEMENT)
    return (*ranges_where(is_control), (replacement, replacement), *UNSTABLE_RANGES)


@functools.cache
def accent_ranges() -> Ranges:
    """Marks that are dropped when text is lower-cased."""
    return ranges_where(lambda character: unicodedata.category(character) == "Mn")


@functools.cache
def punctuation_ranges() -> Ranges:
    """Characters that are separate words."""
    found = ranges_where(lambda character: unicodedata.category(character).startswith("P"))
    return (*_ASCII_PUNCTUATION, *found)


@functools.cache
def _pattern(ranges: Ranges) -> re.Pattern:
    return re.compile(f"({python_class(ranges)})")


def split_words(
    text: str, lower: bool = True, strip_accents: bool | None = None, space_chinese: bool = True
) -> list[str]:
    """The reference's BasicTokenizer: "Ça va, 你好" -> "ca", "va", ",", "", "", "你", ...

    The result may contain empty strings. By default, accents are dropped if text is lower-cased.
    """
    # The reference's order: ideographs are found before lower-casing, and punctuation after accents
    # are dropped, as NFD may turn other characters into punctuation.
    text = _pattern((*dropped_ranges(), SURROGATES)).sub("", text)
    text = _pattern(space_ranges()).sub(" ", text)
    if space_chinese:
        text = _pattern(IDEOGRAPHS).sub(r" \1 ", text)
    if lower:
        text = text.lower()
    if lower if strip_accents is None else strip_accents:
        text = _pattern(accent_ranges()).sub("", unicodedata.normalize("NFD", text))
    return _pattern(punctuation_ranges()).sub(r" \1 ", text).split(" ")


def is_word_alone(word: str) -> bool:
    """Whether a word of `split_words` is a character that is never part of a longer word."""
    ranges = (*IDEOGRAPHS, *punctuation_ranges())
    return len(word) == 1 and _pattern(ranges).match(word) is not None


@functools.cache
def _actions() -> np.ndarray:
    """uint8 by code point: one of _DROP, _KEEP, _SPACE and _APART for each character."""
    actions = np.full(sys.maxunicode + 1, _KEEP, np.uint8)
    for ranges, action in (
        (space_ranges(), _SPACE),
        (IDEOGRAPHS, _APART),
        ((*dropped_ranges(), SURROGATES), _DROP),
    ):
        for first, last in ranges:
            actions[first : last + 1] = action
    actions[ord("\n")] = _KEEP
    return actions


def set_ideographs_apart(texts: Sequence[str], space_chinese: bool = True) -> list[str]:
    """The first half of `split_words` for many texts at once: "ab你好\t!" -> "ab 你  好  !".

    Texts must not contain line breaks. Without `space_chinese`, ideographs are kept: "ab你好 !".
    """
    found = list(texts)
    others = [i for i, text in enumerate(found) if not (text.isascii() and text.isprintable())]
    if not others:
        return found
    text = "\n".join(found[i] for i in others)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    actions = _actions()[points]
    if not space_chinese:
        actions = np.where(actions == _APART, _KEEP, actions)
    is_kept = actions != _DROP
    ends = np.cumsum(_SIZES[actions], dtype=np.int64)
    apart = np.full(ends[-1] if len(ends) else 0, ord(" "), "<u4")
    # "b你": one character and three, ends [1, 4] -> places [0, 2]; the rest remains spaces.
    places = ends - 1 - (actions == _APART)
    apart[places[is_kept]] = np.where(actions == _SPACE, np.uint32(ord(" ")), points)[is_kept]
    for i, text in zip(others, apart.tobytes().decode("utf-32-le").split("\n")):
        found[i] = text
    return found


class WordPieceTokenizer(Tokenizer):
    """A WordPiece vocabulary, a file with a piece on each line; see `Tokenizer`.

    The id of a piece is its line number, from 0; for exceptions see `_load`. The rules
    "plain" are not supported.

    Attributes:
      ids: id of each piece; the last id of a piece that occurs twice.
      max_word_characters: longer words are unknown.
    """

    STORED_NAME = file_names.WORDPIECE
    SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

    def _prepare(self) -> None:
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        is_google = self.settings.rules == "google"
        self.max_word_characters = MAX_WORD_CHARACTERS if is_google else _MAX_OF_HUGGINGFACE
        self._longest = max(map(len, self.pieces))

    @classmethod
    def resolve(cls, settings: TokenizerSettings) -> TokenizerSettings:
        if settings.rules == "plain":
            raise UserError(
                "rules 'plain' are for SentencePiece models, but a file ending in .txt is a "
                f"WordPiece vocabulary. Leave them at {TokenizerSettings.rules!r}."
            )
        spaces = settings.space_chinese is not False
        return super().resolve(dataclasses.replace(settings, space_chinese=spaces))

    def _load(self, content: bytes) -> list[str]:
        try:
            lines = content.decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self.vocab_file} is not a WordPiece vocabulary, one UTF-8 piece a line: {error}."
            ) from None
        lines = [line.rstrip("\r") for line in lines[: -1 if lines[-1] == "" else None]]
        if lines and lines[0].startswith(BYTE_ORDER_MARK):
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            warn_once(f"{self.vocab_file} begins with a byte order mark, which is ignored")
        if self.settings.rules == "huggingface":
            self._warn_of_repeated(lines, "has the id of its last line")
            return lines
        # As google-research/albert's `load_vocab`: the first word of a line, without a count in a
        # second column: " the\t501" -> "the". An empty line is a space, which no word can match.
        pieces = [(line.split() or [" "])[0] for line in lines]
        self._warn_of_columns(lines, pieces)
        self._warn_of_repeated(
            pieces,
            "has the id of its first line, and each repetition lowers the ids after it, as in "
            'google-research; with "rules": "huggingface" in tokenizer_settings.json each line '
            "number is an id, and the last line counts",
        )
        # A repeated piece gets no new id, so the ids after it shift by one. There are still as many
        # ids as lines, since a model has a row for each: a, b, a, c -> "a", "b", "c", "".
        unique = list(dict.fromkeys(pieces))
        return [*unique, *[""] * (len(pieces) - len(unique))]

    def _warn_of_columns(self, lines: Sequence[str], pieces: Sequence[str]) -> None:
        changed = [
            i
            for i, (line, piece) in enumerate(zip(lines, pieces))
            if line.strip() and line != piece
        ]
        if changed:
            first = changed[0]
            warn_once(
                f"{self.vocab_file}:{first + 1}: {lines[first]!r} is read as {pieces[first]!r}, "
                f"without blanks and what follows ({len(changed)} such lines)"
            )

    def _warn_of_repeated(self, pieces: Sequence[str], rule: str) -> None:
        first: dict[str, int] = {}
        repeated = [i for i, piece in enumerate(pieces) if first.setdefault(piece, i) != i]
        if repeated:
            piece = pieces[repeated[0]]
            warn_once(
                f"{self.vocab_file}:{repeated[0] + 1}: {piece!r} is also on line "
                f"{first[piece] + 1}; it {rule} ({len(repeated)} such lines)"
            )

    def _starts_word(self, piece: str) -> bool:
        return not piece.startswith(CONTINUATION)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for word in self.split_words(text):
            if word:
                ids.extend(self.encode_word(word))
        return ids

    def split_words(self, text: str) -> list[str]:
        """`split_words` with this tokenizer's settings."""
        settings = self.settings
        return split_words(
            text, settings.lower, settings.strip_accents, bool(settings.space_chinese)
        )

    def encode_word(self, word: str) -> list[int]:
        """Ids of pieces, each the longest that matches next: "playing" -> "play", "##ing"."""
        if len(word) > self.max_word_characters:
            return [self.unk_id]
        ids, start = [], 0
        while start < len(word):
            mark = CONTINUATION if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                found = self.ids.get(mark + word[start:end])
                if found is not None:
                    break
            else:  # A word is unknown as a whole if no piece matches at some place.
                return [self.unk_id]
            ids.append(found)
            start = end
        return ids

    def encode_pieces(self, text: str) -> list[str]:
        return self.ids_to_pieces(self.encode(text))
