"""A quick probe (seconds) of whether a model can copy a word from earlier in its text.

A word is shown once, and later a mask stands in its place. Extractive question answering depends on
this ability, which a small model may not have learned at all.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

import numpy as np

from albert_tf import AlbertPretrainer, MaskFiller, preset_vocabulary
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer

Row: TypeAlias = dict[str, str | int]
DISTANCES = (36, 96, 234)  # Distances in tokens from the word to the mask.

NAMES = (
    "oliver thomas peter walter henry albert george arthur robert edward simon martin daniel "
    "joseph francis stephen philip lewis charles harry hugh richard frank samuel jack james "
    "adam andrew anthony benjamin douglas howard lawrence leonard nicholas patrick ralph roger"
)
NOUNS = (
    "horse knife bottle piano lamp carpet sword basket candle violin mirror hammer saddle ladder "
    "trumpet blanket kettle rope anchor helmet"
)
CITIES = (
    "london paris berlin madrid vienna rome moscow chicago boston dublin athens cairo tokyo "
    "lisbon naples geneva dresden munich"
)
# Rotated for each word, because answers also depend on the sentence before the question.
_FILLER = """\
the road was long , and few people went out in the morning because of the cold .
the river runs through the valley . in winter they stay at home and tell old stories .
there was a mill behind the church , which had not been used for years .
children played there after school until it was dark , and nobody knew how old the bridge was .
the shops opened late , and the bread was often sold out before noon .
in spring the meadows were full of flowers , and the birds came back from the south .
once a year there was a fair with music and dancing . most of the walls were built of stone .
the train stopped twice a day , and the letters came with it .
the weather changed in the evening , and it rained until the next day .
some of the young men had gone to sea , and only a few of them returned .
at night one could hear the wind in the trees . the fields had to be ready before the first snow .
the school was closed in summer , when everybody had to help with the harvest .
""".splitlines()


class Question(NamedTuple):
    """The parts of a text before and after the filler: {x} is the word, {y} another word."""

    shown: str
    asked: str
    words: str


QUESTIONS = {
    "same word": Question(
        "doctor {x} lived in a small house by the river .",
        "at last somebody came to the door and asked for doctor {mask} .",
        NAMES,
    ),
    "other wording": Question(
        "{x} bought a red car last week .", "the red car was bought by {mask} .", NAMES
    ),
    "two people": Question(
        "{x} bought a red car and {y} bought a boat .", "the red car was bought by {mask} .", NAMES
    ),
    "question": Question(
        "{x} bought a red car last week .", "who bought a red car last week ? {mask} .", NAMES
    ),
    "noun": Question(
        "he carried a {x} into the room and put it on the table .",
        "on the table there was a {mask} .",
        NOUNS,
    ),
    "city": Question(
        "she was born in {x} and moved to the country later .",
        "the city where she was born is {mask} .",
        CITIES,
    ),
}


def probe(name_or_path: str) -> list[Row]:
    """`count_copies` for weights with a masked-LM head."""
    tokenizer = load_tokenizer(preset_vocabulary(name_or_path))
    return count_copies(MaskFiller(name_or_path).model, tokenizer)


def count_copies(model: AlbertPretrainer, tokenizer: Tokenizer) -> list[Row]:
    """A row for each question and distance: out of `words` texts, in how many the model's first
    choice for the mask is the word (`found`) or `another`, the next word of the list: the other
    person if there are two, otherwise a word that is not in the text.
    """
    rows: list[Row] = []
    for name, question in QUESTIONS.items():
        words = known_words(question, tokenizer)
        others = words[1:] + words[:1]
        for distance in DISTANCES:
            pairs = zip(words, others)
            ids = np.array([text_ids(question, *pair, distance, tokenizer) for pair in pairs])
            if ids.shape[1] > (most := model.config.max_position_embeddings):
                raise UserError(f"The probe has {ids.shape[1]} tokens, the model {most} positions.")
            positions = np.argmax(ids == tokenizer.mask_id, axis=1)[:, None]
            outputs = model({"input_word_ids": ids, "masked_lm_positions": positions})
            best = np.argmax(outputs["masked_lm_logits"][:, 0], axis=-1)
            found, another = (int(np.sum(best == each)) for each in (words, others))
            row: Row = {"question": name, "distance": distance, "words": len(words)}
            rows.append({**row, "found": found, "another": another})
    return rows


def known_words(question: Question, tokenizer: Tokenizer) -> list[int]:
    """Ids of those words that are a single piece."""
    encoded = tokenizer.encode_batch(question.words.split())
    ids = [each[0] for each in encoded if len(each) == 1 and each[0] != tokenizer.unk_id]
    if len(ids) < 2:
        raise UserError(
            f"{tokenizer.vocab_file} has {len(ids)} of these words as a piece, and 2 are needed: "
            f"{question.words}. The probe is for vocabularies of lower-case English."
        )
    return ids


def text_ids(
    question: Question, word: int, other: int, distance: int, tokenizer: Tokenizer
) -> list[int]:
    """Ids of the text with a word and another one, including [CLS] and [SEP]."""
    slots = {"{x}": word, "{y}": other, "{mask}": tokenizer.mask_id}

    def encode(text: str) -> list[int]:
        parts = re.split(r"(\{\w+\})", text)
        return [i for p in parts for i in ([slots[p]] if p in slots else tokenizer.encode(p))]

    shown, asked = encode(question.shown), encode(question.asked)
    missing = distance - (len(shown) - shown.index(word) + asked.index(tokenizer.mask_id))
    if missing < 0:
        raise UserError(f"{tokenizer.vocab_file}: {question.asked!r} has over {distance} pieces.")
    first = word % len(_FILLER)
    # Twice, since a large vocabulary makes fewer pieces of it than there are tokens to fill.
    filler = tokenizer.encode(" ".join(2 * (_FILLER[first:] + _FILLER[:first])))
    filler = filler[len(filler) - missing :]  # Keep the end, so that it ends with a sentence.
    return [tokenizer.cls_id, *shown, *filler, *asked, tokenizer.sep_id]
