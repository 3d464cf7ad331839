"""The messages of customers are what their guide says: twelve intents, dev in other words."""

from __future__ import annotations

import collections
import re
from pathlib import Path

from data_pipeline.finetuning.tsv import read_tsv

TICKETS = Path(__file__).parents[2] / "demo" / "tickets"


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
