"""Scores of the spans that token tags describe, such as B-PER I-PER O, counted as in conlleval.

They equal the scores of seqeval 1.2.2 in its default mode, whatever the spelling of the tags. That
package has no wheel, and no release since 2020, so the few lines that find spans are here, and
scikit-learn computes the scores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import sklearn.metrics

_OUTSIDE = "O"
# Prefixes of BIOES, BILOU (L last, U unit) and BMES (M middle), alone or with a kind.
_TAG = re.compile("[BIESLUM](-.*)?")
# The other prefixes in the letters of BIOES.
_SAME_PREFIX = {"L": "E", "U": "S", "M": "I"}
_BEGIN_TO_INSIDE = str.maketrans("Bb", "Ii")
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
    """The spans of a sentence, in order: seqeval's `get_entities`.

    Tags are O or a prefix (B begin, I inside, E end, S single) with a kind. One that cannot
    continue the span before it begins a new one, whatever its prefix, as a model may predict tags
    in any order:

        B-PER I-PER O I-LOC  ->  PER 0-1, LOC 3-3
        B-PER B-PER I-LOC    ->  PER 0-0, PER 1-1, LOC 2-2

    A tag with any other letter ends the span before it and begins a new one if its kind differs.
    """
    found: list[Span] = []
    first, before, kind_before = 0, _OUTSIDE, ""
    # The last tag ends a span that reaches the end of the sentence.
    for number, tag in enumerate([*tags, _OUTSIDE]):
        prefix, kind = tag[0], _kind(tag)
        is_other = kind != kind_before
        # Both conditions are seqeval's, which takes "." for outside as well.
        if (
            before in "ES"
            or (before in "BI" and prefix in "BSO")
            or (before not in "O." and is_other)
        ):
            found.append(Span(kind_before, first, number - 1))
        if (
            prefix in "BS"
            or (before in "ESO" and prefix in "EI")
            or (prefix not in "O." and is_other)
        ):
            first = number
        before, kind_before = prefix, kind
    return found


def _kind(tag: str) -> str:
    """B-PER -> PER; B_PER -> _PER, as in seqeval; a tag without a kind, such as B -> _."""
    return tag[1:].split("-", maxsplit=1)[-1] or "_"


def conlleval_tags(tags: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Tags in the form that `spans` reads, whatever their form in the files.

    B-PER L-PER U-LOC O  ->  B-PER E-PER S-LOC O     BILOU
    B-PER M-PER E-PER    ->  B-PER I-PER E-PER       BMES
    B_PER i-per X        ->  B_PER i-per X           other spellings: left to seqeval's rules
    NOUN VERB            ->  S-NOUN S-VERB           no spans: each word is one by itself
    """
    if all(name == _OUTSIDE or _TAG.fullmatch(name) for name in labels):
        return [_SAME_PREFIX.get(tag[0], tag[0]) + tag[1:] for tag in tags]
    if _describe_spans(labels):
        return list(tags)
    return [tag if tag == _OUTSIDE else f"S-{tag}" for tag in tags]


def _describe_spans(labels: Sequence[str]) -> bool:
    """Whether a tag begins with B- or I-, or a tag with B has a counterpart with I.

    B_PER and I_PER, b-per and i-per, PER-B and PER-I; tags of parts of speech have none.
    """
    names = set(labels)
    for name in labels:
        if name[:2] in ("B-", "I-"):
            return True
        twins = [name[:1].translate(_BEGIN_TO_INSIDE) + name[1:]]
        if name[-2:-1] in ("-", "_"):
            twins.append(name[:-1] + name[-1:].translate(_BEGIN_TO_INSIDE))
        if any(twin != name and twin in names for twin in twins):
            return True
    return False


def span_scores(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> dict[str, float | None]:
    """The scores "f1", "precision" and "recall" of whole spans, "accuracy" of tags, in [0, 1].

    A span is right if its kind, its first and its last token are. A score with a denominator of 0
    is 0, as in seqeval.
    """
    lengths = [list(map(len, tags)) for tags in (labels, predictions)]
    if lengths[0] != lengths[1] or not sum(lengths[0]):
        raise ValueError("expected as many predicted tags as right ones, and at least one")
    # All sentences are joined, as in seqeval: an irregular tag may depend on those before it.
    right, predicted = (
        set(spans([tag for tags in all_tags for tag in (*tags, _OUTSIDE)]))
        for all_tags in (labels, predictions)
    )
    # One row for each span that is in either set; the scores are those of the class True.
    either = sorted(right | predicted)
    is_right, is_predicted = ([span in some for span in either] for some in (right, predicted))
    # Without any span, both lists are [False], and all scores are 0.
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
