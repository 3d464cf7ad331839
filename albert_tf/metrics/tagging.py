"""Scores of spans that tags of tokens describe, such as B-PER I-PER O: as conlleval counts them.

They equal those of seqeval 1.2.2 in its default mode. That package has had no release since 2020
and no wheel, so that the few lines that find spans are here, and scikit-learn counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sklearn.metrics

_OUTSIDE = "O"
_PREFIXES = "BIESLUM"
# Prefixes of BILOU (L last, U unit) and BMES (M middle) in the letters of BIOES.
_SAME_PREFIX = {"L": "E", "U": "S", "M": "I"}
# Names of the figures of `span_scores`.
SCORES = ("f1", "precision", "recall", "accuracy")


class Span(NamedTuple):
    """A stretch of tokens.

    Attributes:
      kind: what follows the prefix of its tags, such as PER.
      first, last: its first and its last token.
    """

    kind: str
    first: int
    last: int


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of a sentence, in order.

    Tags are O or a prefix (B begin, I inside, E end, S single) with a kind. One that cannot go on
    with the span before it begins one, whatever its prefix, as a model's tags may be in any order:

        B-PER I-PER O I-LOC  ->  PER 0-1, LOC 3-3
        B-PER B-PER I-LOC    ->  PER 0-0, PER 1-1, LOC 2-2
    """
    found: list[Span] = []
    previous = _OUTSIDE
    for number, tag in enumerate(tags):
        if tag != _OUTSIDE:
            goes_on = previous[0] in "BI" and tag[0] in "IE" and _kind(tag) == _kind(previous)
            first = found.pop().first if goes_on else number
            found.append(Span(_kind(tag), first, number))
        previous = tag
    return found


def _kind(tag: str) -> str:
    """B-PER -> PER; a tag without a kind, such as B -> empty."""
    return tag[2:]


def conlleval_tags(tags: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Tags in the form that `spans` reads, whatever the form of their files.

        B-PER L-PER U-LOC O  ->  B-PER E-PER S-LOC O     BILOU
        B-PER M-PER E-PER    ->  B-PER I-PER E-PER       BMES
        NOUN VERB            ->  S-NOUN S-VERB           no spans: each word is one by itself

    Args:
      tags: of a sentence.
      labels: all tags that there are; if one is neither O nor a prefix with a kind, none of them
        describes a span.
    """
    if all(name == _OUTSIDE or (name[0] in _PREFIXES and name[1:2] == "-") for name in labels):
        return [_SAME_PREFIX.get(tag[0], tag[0]) + tag[1:] for tag in tags]
    return [tag if tag == _OUTSIDE else f"S-{tag}" for tag in tags]


def span_scores(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> dict[str, float | None]:
    """The scores "f1", "precision" and "recall" of whole spans, "accuracy" of tags, in [0, 1].

    A span is right if its kind, its first and its last token are. A score that divides by no spans
    is 0, as in seqeval.

    Args:
      labels: the right tags of each sentence.
      predictions: the predicted ones.

    Raises:
      ValueError: the numbers of sentences or of their tags differ, or there are none.
    """
    lengths = [list(map(len, tags)) for tags in (labels, predictions)]
    if lengths[0] != lengths[1] or not sum(lengths[0]):
        raise ValueError("expected as many predicted tags as right ones, and at least one")
    right, predicted = (
        {(sentence, span) for sentence, tags in enumerate(all_tags) for span in spans(tags)}
        for all_tags in (labels, predictions)
    )
    # One row for each span that is in either; scores of the class "it is there".
    either = sorted(right | predicted)
    is_right, is_predicted = ([span in some for span in either] for some in (right, predicted))
    precision, recall, f1, _ = sklearn.metrics.precision_recall_fscore_support(
        is_right or [False], is_predicted or [False], average="binary", zero_division=0
    )
    flat = [[tag for tags in all_tags for tag in tags] for all_tags in (labels, predictions)]
    return {
        "f1": float(f1),
        "precision": float(precision),
        "recall": float(recall),
        "accuracy": float(sklearn.metrics.accuracy_score(*flat)),
    }
