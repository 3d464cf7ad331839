"""The messages of customers are what their guide says: twelve intents, dev in other words."""

from __future__ import annotations

import collections
import re
from pathlib import Path

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from data_pipeline.finetuning.tsv import read_tsv

TICKETS = Path(__file__).parents[2] / "demo" / "tickets"
# Words that do not tell what a message is about.
COMMON = ENGLISH_STOP_WORDS.union(
    ("does", "did", "want", "like", "get", "got", "said", "says", "time", "new")
)


def content_words(text: str) -> set[str]:
    """The beginnings of a message's content words: "Shipping was delayed" -> {"ship", "dela"}."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {word[:4] for word in words if word not in COMMON and len(word) > 2}


def messages() -> dict[str, dict[str, list[str]]]:
    """The messages of both files by intent."""
    found: dict[str, dict[str, list[str]]] = {}
    for split in ("train", "dev"):
        by_intent = found[split] = collections.defaultdict(list)
        for example in read_tsv(str(TICKETS / f"{split}.tsv")).examples:
            by_intent[example.label].append(example.text_a)
    return found


def test_the_intents_are_those_of_the_guide():
    guide = (TICKETS / "GUIDE.md").read_text(encoding="utf-8")
    intents = re.findall(r"^\| ([a-z]+) \| .*\. \|$", guide, re.M)
    assert len(intents) == 12
    for split, count in (("train", 40), ("dev", 10)):
        counts = {intent: len(texts) for intent, texts in messages()[split].items()}
        assert counts == dict.fromkeys(intents, count)


def test_no_message_is_there_twice():
    texts = [
        text for split in messages().values() for of_intent in split.values() for text in of_intent
    ]
    plain = collections.Counter(re.sub(r"\W+", " ", text).strip().casefold() for text in texts)
    assert [text for text, count in plain.items() if count > 1] == []


def test_dev_messages_have_words_of_their_own():
    found = messages()
    shared = total = 0
    for intent, texts in found["dev"].items():
        known = set().union(*map(content_words, found["train"][intent]))
        for text in texts:
            words = content_words(text)
            assert len(words & known) <= 2, text
            shared, total = shared + len(words & known), total + len(words)
    assert total > 300 and shared / total < 0.11
