"""Pieces of a text, each with the span of the original text that it was made from.

The model predicts an answer as a span of pieces, but users need a part of the original text. The
text in between was normalized: ligatures became letters, accents were dropped, case was lowered.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings
from data_pipeline.tokenizers.normalization import normalize
from data_pipeline.tokenizers.sentencepiece import WORD_MARK, SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import CONTINUATION, WordPieceTokenizer, split_words


class AlignedPieces(NamedTuple):
    """Pieces with their places: "Ça va" -> ids of "▁ca", "▁va", starts [0, 2], ends [1, 4].

    A SentencePiece piece that starts a word includes the space before it. A lone word mark that
    stands for no character has an end before its start.

    Attributes:
      ids: int32 [T], the result of the tokenizer's `encode`.
      starts: int32 [T], place of the first character of each piece.
      ends: int32 [T], place of the last character of each piece.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


# google-research/albert maps back by a longest common subsequence, computed for every question, and
# drops questions where too little is in common (for example Korean). Here each step keeps the
# original places of its characters, in linear time, and no question is dropped.
class _Traced(NamedTuple):
    """A derived text, with the first and last original place of each of its characters."""

    text: str
    firsts: list[int]
    lasts: list[int]


def align(tokenizer: Tokenizer, text: str) -> AlignedPieces:
    """The pieces of a text, with the place of each."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        found = _sentencepiece_places(tokenizer, text)
    else:
        assert isinstance(tokenizer, WordPieceTokenizer)
        found = _wordpiece_places(tokenizer, text)
    return AlignedPieces(*np.array(found, np.int32).reshape(-1, 3).T.copy())


@functools.lru_cache(maxsize=1 << 16)
def _size_normalized(character: str, lower: bool, strip_accents: bool) -> int:
    """Length of a normalized non-whitespace character: "ﬁ" -> 2, a combining accent -> 0."""
    # Characters can be counted separately: neighbors may decide which sigma a letter becomes, but
    # never the number of letters.
    return len(normalize(character, lower, strip_accents=strip_accents))


def _trace_normalization(text: str, settings: TokenizerSettings) -> _Traced:
    """`normalize`, with places: " Ça  ﬁn" -> "ca fin", firsts = lasts = [1, 2, 3, 5, 5, 6]."""
    lower, strips = settings.lower, bool(settings.strip_accents)
    firsts: list[int] = []
    lasts: list[int] = []

    def add(first: int, last: int, size: int = 1) -> None:
        firsts.extend([first] * size)
        lasts.extend([last] * size)

    place, length = 0, len(text)
    while place < length:
        end = place + 1
        if text[place].isspace():
            while end < length and text[end].isspace():
                end += 1
            # Whitespace at either end of the text is dropped; a run inside becomes one space.
            if place and end < length:
                add(*_space_places(text, place, end))
        elif settings.join_quotes and text[place : place + 2] in ("``", "''"):
            end = place + 2
            add(place, end - 1)
        else:
            add(place, place, _size_normalized(text[place], lower, strips))
        place = end
    return _Traced(normalize(text, lower, settings.join_quotes, strips), firsts, lasts)


def _space_places(text: str, start: int, end: int) -> tuple[int, int]:
    """First and last place of the text that the single space for a run of whitespace stands for."""
    # As in the reference, this is an actual space if there is one ("\n \t": the middle one; spaces
    # of other widths count, too), and otherwise the whole run.
    for place in range(start, end):
        if unicodedata.normalize("NFKD", text[place]) == " ":
            return place, place
    return start, end - 1


def _sentencepiece_places(
    tokenizer: SentencePieceTokenizer, text: str
) -> list[tuple[int, int, int]]:
    """Id, start and end of each piece."""
    traced = _trace_normalization(text, tokenizer.settings)
    # If nothing precedes a piece, as for the first word's word mark, the start of the text is used.
    firsts = [*traced.firsts, len(text)]
    lasts = [*traced.lasts, -1]  # lasts[-1] is the place before the first character.
    found: list[tuple[int, int, int]] = []
    # SentencePiece has to return the characters of each piece, because it normalizes again (NFKC,
    # which composes Hangul) and adds a word mark at the beginning, where there is no space.
    pieces = tokenizer.processor.encode(traced.text, out_type="immutable_proto").pieces
    for piece in pieces:
        places = _places_of(piece, traced.text)
        new_ids = tokenizer.resplit.get(piece.id, (piece.id,))
        parts = [tokenizer.pieces[i] for i in new_ids]
        for i, part in zip(new_ids, _part_places(piece, parts, places)):
            found.append((i, firsts[part[0]], lasts[part[1] - 1]))
    if found:
        found[0] = (found[0][0], 0, found[0][2])
    return found


def _places_of(piece, text: str) -> Sequence[int]:
    """Places of the characters of a piece, without those that SentencePiece dropped."""
    places = range(piece.begin, piece.end)
    if piece.surface.isprintable():  # Nearly all pieces: they have no invisible characters.
        return places
    # Of "\ufeff 47" the last three places are kept: with an invisible control or format character,
    # an answer would not equal the gold answer. If a word mark has no space, SentencePiece made it
    # from such a character (U+200B), and all places are kept.
    kept = [
        place
        for place in places
        if unicodedata.category(text[place]) not in ("Cc", "Cf") or text[place] in piece.piece
    ]
    has_mark = piece.piece.startswith(WORD_MARK)
    return kept if kept and (not has_mark or text[kept[0]] == " ") else places


def _part_places(piece, parts: Sequence[str], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges (first, last + 1) of the parts of a piece; a single range if it is not split.

    The piece "▁2010," at [4, 10), split into "▁20", "10", ",": [4, 7), [7, 9), [9, 10). The piece
    "000," at [4, 8), split into "▁", "000", ",": the word mark, which is not in the text, is at
    [4, 4).
    """
    sizes = [len(part) for part in parts]
    # The word mark has no place, one place, or several invisible ones.
    sizes[0] = max(sizes[0] + len(places) - sum(sizes), 0)
    begin = 0
    for size in sizes:
        chosen = places[begin : begin + size]
        first = places[begin] if begin < len(places) else piece.end
        yield (first, chosen[-1] + 1) if chosen else (first, first)
        begin += size


@functools.lru_cache(maxsize=1 << 16)
def _size_of_words(character: str, lower: bool, strip_accents: bool) -> int:
    """Number of characters that a character becomes in `split_words`; 0 for whitespace."""
    return sum(map(len, split_words(character, lower, strip_accents)))


def _wordpiece_places(tokenizer: WordPieceTokenizer, text: str) -> list[tuple[int, int, int]]:
    """Id, start and end of each piece; an unknown word is one piece."""
    # "Ça 你" -> the words "ca", "你" and the places 0, 1, 3 of their characters.
    lower, strips = tokenizer.settings.lower, bool(tokenizer.settings.strip_accents)
    places: list[int] = []
    for place, character in enumerate(text):
        places.extend([place] * _size_of_words(character, lower, strips))
    found: list[tuple[int, int, int]] = []
    begin = 0
    for word in tokenizer.split_words(text):
        for i in tokenizer.encode_word(word) if word else ():
            end = begin + len(tokenizer.pieces[i].removeprefix(CONTINUATION))
            if i == tokenizer.unk_id:
                end = begin + len(word)
            found.append((i, places[begin], places[end - 1]))
            begin = end
    return found


def piece_range(pieces: AlignedPieces, start: int, end: int) -> tuple[int, int]:
    """First and last piece of the characters from `start` to `end`, both inclusive.

    Characters without a piece, such as a combining accent, are dropped at either side; the first is
    greater than the last if nothing is left.
    """
    first = int(np.searchsorted(pieces.ends, start, "left"))
    last = int(np.searchsorted(pieces.starts, end, "right")) - 1
    return first, last
