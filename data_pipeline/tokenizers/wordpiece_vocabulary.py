"""Learns a WordPiece vocabulary from words, as the Chinese ALBERTs and BERT use it.

Ideographs and punctuation are always separate words, so each is a piece, without a "##" form, which
would never be used. The pieces of other words are found by SentencePiece's byte-pair encoding: the
same text gives the same vocabulary, in seconds.
"""

from __future__ import annotations

import collections
import io
import itertools
import tempfile
from collections.abc import Iterable, Mapping

import sentencepiece

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.sentencepiece import WORD_MARK
from data_pipeline.tokenizers.wordpiece import (
    CONTINUATION,
    MAX_WORD_CHARACTERS,
    WordPieceTokenizer,
    is_word_alone,
    set_ideographs_apart,
    split_words,
)

_SENTENCES_AT_ONCE = 10_000
_MAX_WORDS = 1 << 22


def word_counts(sentences: Iterable[str], settings: TokenizerSettings) -> collections.Counter[str]:
    """Counts the words that `split_words` finds with resolved settings.

    Beyond about four million different words, words that occurred only once are dropped.
    """
    space_chinese = bool(settings.space_chinese)
    counts: collections.Counter[str] = collections.Counter()
    sentences = iter(sentences)
    while some := list(itertools.islice(sentences, _SENTENCES_AT_ONCE)):
        # `split_words` is slow, so it is called below once per distinct string.
        for text in set_ideographs_apart(some, space_chinese):
            counts.update(text.split())
        if len(counts) > _MAX_WORDS:
            for word in [word for word, times in counts.items() if times == 1]:
                del counts[word]
    words: collections.Counter[str] = collections.Counter()
    for text, times in counts.items():
        found = split_words(text, settings.lower, settings.strip_accents, space_chinese)
        for word in filter(None, found):
            words[word] += times
    return words


def _alphabet(words: Mapping[str, int], coverage: float) -> set[str]:
    """The most frequent characters that together make up the share `coverage` of the text."""
    counts: collections.Counter = collections.Counter()
    for word, times in words.items():
        for character in word:
            counts[character] += times
    wanted, alphabet = coverage * sum(counts.values()), set()
    # Ties are broken by the character, so that the order of the text does not matter.
    for character, times in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if wanted <= 0:
            break
        alphabet.add(character)
        wanted -= times
    return alphabet


def learn_pieces(words: Mapping[str, int], vocab_size: int, character_coverage: float) -> list[str]:
    """Learns exactly `vocab_size` pieces, and returns them in the order of their ids.

    [PAD], [UNK], [CLS], [SEP], [MASK]; ideographs and punctuation; the characters of other words,
    alone and with ##; longer pieces, the most frequent ones first. UserError if the characters
    alone need more pieces, or if the text does not have enough.
    """
    alphabet = _alphabet(words, character_coverage)
    alone = sorted(word for word in words if is_word_alone(word) and word in alphabet)
    # Longer words, and words with rarer characters, are unknown as a whole, so they need no pieces.
    rest = {
        word: times
        for word, times in words.items()
        if not is_word_alone(word)
        and len(word) <= MAX_WORD_CHARACTERS
        and alphabet.issuperset(word)
    }
    fixed = [*WordPieceTokenizer.SPECIAL_PIECES, *alone]
    characters = sorted(set().union(*rest))
    both_forms = [*characters, *(CONTINUATION + character for character in characters)]
    room = vocab_size - len(fixed) - len(both_forms)
    if room < 0:
        raise UserError(
            f"--vocab_size={vocab_size} is too small: the characters of the text alone need "
            f"{vocab_size - room}. Raise --vocab_size or lower --character_coverage."
        )
    # SentencePiece counts a word mark with one character as a merged piece. As these are dropped
    # here, one more piece is requested for each character.
    longer = _merged_pieces(rest, room + len(characters))[:room] if rest else []
    if len(longer) < room:
        raise UserError(
            f"--vocab_size={vocab_size} is too large for the text: at most "
            f"{vocab_size - room + len(longer)} pieces can be learned from it. Lower --vocab_size "
            "or give more text."
        )
    return [*fixed, *both_forms, *longer]


def _merged_pieces(words: Mapping[str, int], merges: int) -> list[str]:
    """Pieces of several characters, in the order of merges, the most frequent pairs first."""
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile(suffix=".tsv") as file:
        file.write("".join(f"{word}\t{times}\n" for word, times in words.items()).encode("utf-8"))
        file.flush()
        sentencepiece.SentencePieceTrainer.train(
            input=file.name,
            input_format="tsv",
            model_writer=model,
            model_type="bpe",
            vocab_size=len(set().union(*words)) + 2 + merges,  # With <unk> and the word mark.
            hard_vocab_limit=False,  # `learn_pieces` raises an error for fewer pieces.
            character_coverage=1.0,  # `_alphabet` has already dropped rare characters.
            # Words are already normalized and split as the tokenizer does. More of that would
            # learn pieces that it cannot use.
            normalization_rule_name="identity",
            split_by_unicode_script=False,
            split_by_number=False,
            bos_id=-1,
            eos_id=-1,
            minloglevel=2,
        )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.IdToPiece(i) for i in range(1, processor.GetPieceSize())]
    return [
        piece.removeprefix(WORD_MARK) if piece.startswith(WORD_MARK) else CONTINUATION + piece
        for piece in pieces
        if len(piece.removeprefix(WORD_MARK)) > 1
    ]
