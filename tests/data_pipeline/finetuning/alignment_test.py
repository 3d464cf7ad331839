"""Pieces lead back to the characters of the original text, as in google-research/albert."""

import itertools
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data_pipeline.finetuning.alignment import align, piece_range
from data_pipeline.tokenizers.normalization import normalize
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer

TEXTS = (
    "The oﬃce sells ﬁgs and Crème brûlée.",
    " Two  spaces\tand\na line, a\xa0hard space\u2003and \t both. ",
    "Cafe\u0301s in İstanbul… ½ of ΟΔΟΣ, 10,000, or 1,950, or 20,5; in 1950, 7,",
    "E\ufeff / \ufeff47 or —\u200b\u200bmany leads",
    "Ⅷ",
    "``Quoted'' and ''so`` on",
)


def texts_of(pieces, text):
    """The characters of each piece."""
    return [text[start : end + 1] for start, end in zip(pieces.starts, pieces.ends)]


def reference_places(tokenizer, text):
    """First and last character of each piece by the reference's way, a common subsequence.

    Characters are paired where one becomes the other by itself; a gap is filled from its neighbors.
    """
    pieces = tokenizer.encode_pieces(text)
    joined = "".join(pieces).replace("▁", " ")
    single = [
        "".join(c for c in unicodedata.normalize("NFKD", x) if not unicodedata.combining(c))
        for x in text
    ]
    single = [x.lower() for x in single] if tokenizer.settings.lower else single
    best = np.zeros((len(text), len(joined)), int)
    step = np.zeros_like(best)
    for i in range(len(text)):
        for j in range(len(joined)):
            best[i, j] = best[i - 1, j] if i else 0
            if j and best[i, j - 1] > best[i, j]:
                best[i, j], step[i, j] = best[i, j - 1], 1
            diagonal = best[i - 1, j - 1] if i and j else 0
            if single[i] == joined[j] and diagonal + 1 > best[i, j]:
                best[i, j], step[i, j] = diagonal + 1, 2
    paired, i, j = {}, len(text) - 1, len(joined) - 1
    while i >= 0 and j >= 0:
        if step[i, j] == 2:
            paired[j] = i
        i, j = i - (step[i, j] != 1), j - (step[i, j] != 0)

    def place(j, is_start):
        front = max((paired[k] for k in paired if k <= j), default=None)
        rear = min((paired[k] for k in paired if k >= j), default=None)
        if j in paired:
            return paired[j]
        if front is None:
            return 0 if is_start else max((rear or 0) - 1, 0)
        if rear is None:
            return min(front + 1, len(text) - 1) if is_start else len(text) - 1
        if rear == front + 1:
            return rear if is_start else front
        return front + 1 if is_start else rear - 1

    ends = np.cumsum([len(piece) for piece in pieces])
    starts = [place(end - len(piece), True) for end, piece in zip(ends, pieces)]
    return starts, [place(end - 1, False) for end in ends]


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("text", TEXTS[:4])
def test_places_are_the_reference_s(vocab_file, text, lower):
    tokenizer = SentencePieceTokenizer(vocab_file, lower)
    pieces = align(tokenizer, text)
    starts, ends = reference_places(tokenizer, text)
    assert pieces.starts.tolist() == starts
    assert np.maximum(pieces.ends, 0).tolist() == ends


@pytest.mark.parametrize("rules", ["google", "huggingface", "plain"])
def test_ids_are_the_tokenizer_s(vocab_file, wordpiece, rules):
    tokenizers = (SentencePieceTokenizer(vocab_file, rules=rules), wordpiece)
    for tokenizer, text in itertools.product(tokenizers, ["", " ", "\u0301", *TEXTS]):
        pieces = align(tokenizer, text)
        assert pieces.ids.tolist() == tokenizer.encode(text)
        assert pieces.ids.dtype == pieces.starts.dtype == pieces.ends.dtype == np.int32
        assert pieces.ids.shape == pieces.starts.shape == pieces.ends.shape


@pytest.mark.parametrize(
    "rules, text, starts, ends",
    [
        ("google", "of a file", ["of", " a"], []),  # A piece starts at the space before it.
        ("google", "x1950,", [], [","]),  # The word mark of a number that is split is empty.
        ("huggingface", "``a'' b", [], [" b"]),  # Its rules join the quotes.
        ("google", "서울 (부산) 서울", [], ["서울"]),  # The reference drops it.
    ],
)
def test_pieces_are_parts_of_the_text(vocab_file, rules, text, starts, ends):
    found = texts_of(align(SentencePieceTokenizer(vocab_file, rules=rules), text), text)
    assert "".join(found) == text
    assert found[: len(starts)] == starts and found[len(found) - len(ends) :] == ends


def test_a_number_before_a_comma_is_split_where_its_parts_are(tokenizer):
    """The vocabulary has "0," in it, which google's rules split to "▁", "0" or "▁0", and ","."""
    text = "in 1950, in 20,00,"
    pieces = align(tokenizer, text)
    spelled = [tokenizer.pieces[i].replace("▁", " ") for i in pieces.ids]
    assert "".join(texts_of(pieces, text)) == text
    for piece, part in zip(spelled[1:], texts_of(pieces, text)[1:]):
        # The word mark that the rules leave in front of what is split again has no character.
        assert part in (piece, piece.removeprefix(" "))


CHARACTERS = st.sampled_from("abe AZ019,.ﬁ…½éÉ\u0301\u0345İΣßᾳ\xa0\u2003\t\n한국中`'\ufeff\0")


@settings(max_examples=100, deadline=None)
@given(st.text(CHARACTERS, max_size=40), st.booleans())
@example("\u03019,", False)  # Two word marks before the first character that is left.
@example("0\u03019,", False)
def test_what_a_piece_is_made_of_becomes_the_piece(vocab_file, text, lower):
    tokenizer = SentencePieceTokenizer(vocab_file, lower)
    pieces = align(tokenizer, text)
    assert pieces.ids.tolist() == tokenizer.encode(text)
    assert (np.diff(pieces.starts) >= 0).all() and (np.diff(pieces.ends) >= 0).all()
    assert ((pieces.starts >= 0) & (pieces.ends < len(text))).all()
    for start, end in zip(pieces.starts, pieces.ends):
        # A word mark alone is between two characters, and beside those that became nothing.
        assert end >= start - 1 or not normalize(text[end + 1 : start], lower)
    for i, part in zip(pieces.ids, texts_of(pieces, text)):
        letters = tokenizer.pieces[i].replace("▁", "")
        if i != tokenizer.unk_id and letters:
            assert letters in unicodedata.normalize("NFKC", normalize(part, lower))


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(), max_size=30))
def test_any_text_can_be_aligned(tokenizer, wordpiece, text):
    for either in (tokenizer, wordpiece):
        pieces = align(either, text)
        assert pieces.ids.tolist() == either.encode(text)
        assert ((pieces.starts >= 0) & (pieces.ends < len(text))).all()


def test_every_character_is_aligned(tokenizer, wordpiece):
    """One text of all characters of the first planes, a few of each block beside each other."""
    text = " ".join("".join(map(chr, range(start, start + 8))) for start in range(0, 0x30000, 48))
    for either in (tokenizer, wordpiece):
        pieces = align(either, text)
        assert pieces.ids.tolist() == either.encode(text)
        assert (pieces.ends < len(text)).all()


def test_wordpiece_of_english_and_chinese(wordpiece):
    text = " The Röyal 北京,in\u200b中国 zzqqxx "
    pieces = align(wordpiece, text)
    found = texts_of(pieces, text)
    assert [part for part in found if part in "北京中国,"] == ["北", "京", ",", "中", "国"]
    assert found[0] == "The" and "in" in found
    # Together they are the text without white space and format characters.
    assert "".join(found) == "TheRöyal北京,in中国zzqqxx"


def test_an_unknown_word_is_one_piece(wordpiece):
    text = "the 魑 " + "x" * 300 + " of"
    pieces = align(wordpiece, text)
    found = texts_of(pieces, text)
    assert [found[i] for i in np.flatnonzero(pieces.ids == wordpiece.unk_id)][-1] == "x" * 300
    assert found[0] == "the" and found[-1] == "of"


def test_pieces_of_a_range_of_characters(tokenizer):
    text = "of a\u0301 file"
    pieces = align(tokenizer, text)
    assert texts_of(pieces, text)[:2] == ["of", " a"]
    assert piece_range(pieces, 0, 1) == (0, 0)
    assert piece_range(pieces, 0, 4) == (0, 1)  # An accent that is no piece of its own.
    assert piece_range(pieces, 3, 3) == (1, 1)
    first, last = piece_range(pieces, 4, 4)
    assert first > last
    assert piece_range(pieces, 0, len(text) - 1) == (0, len(pieces.ids) - 1)
