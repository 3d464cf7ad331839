"""Recurring spans as questions (recurring-span selection; Ram et al., Splinter, ACL 2021).

    [CLS] the red car was sold . she saw the red car and sold it [SEP]
    [CLS] the [MASK] was sold . she saw the red car and [MASK] it [SEP]

One place of each span is kept, the answer; each other place, of any length, becomes one [MASK].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from data_pipeline.pretraining.masking import MaskingRule, find_words, prediction_budgets
from data_pipeline.pretraining.recurring import find_recurring, ranges, sums_in_rows


class Rows(NamedTuple):
    """R sequences; every array is [R, S], with 0 or False in padding."""

    tokens: np.ndarray  # int32
    boundaries: np.ndarray  # bool, whether a word or a special piece starts.
    is_special: np.ndarray  # bool
    is_b: np.ndarray  # bool, whether the token is in the second segment.


class Answers(NamedTuple):
    """The places that are kept, at most Q per sequence; every array is [R, Q]."""

    starts: np.ndarray  # int64, positions of first tokens; 0 if there is no answer.
    ends: np.ndarray  # int64, positions of last tokens.
    are_real: np.ndarray  # bool


def most_answers(share: float, max_seq_length: int) -> int:
    """Q, the largest number of answers for a share of the tokens."""
    return int(prediction_budgets(np.array(max_seq_length), share, max_seq_length))


def ask(
    rows: Rows, lengths: np.ndarray, share: float, rule: MaskingRule, rng: np.random.Generator
) -> tuple[Rows, np.ndarray, Answers]:
    """Replaces recurring spans in sequences of `lengths` (int64 [R]) tokens by [MASK]s, at most a
    share of the tokens. Returns sequences, lengths and answers. [MASK]s count as special pieces.
    """
    assert rule.is_content is not None
    rows = Rows(*(values.copy() for values in rows))
    num_rows, size = rows.tokens.shape
    words = find_words(rows.boundaries, rows.is_special)
    found = find_recurring(rows.tokens, words, rule.is_content)
    row = np.searchsorted(words.first, found.first, side="right") - 1
    start, end = words.starts[found.first], words.ends[found.end - 1]
    # Takes spans in random order until the [MASK]s in their sequence would exceed the budget.
    counts = np.bincount(found.span)
    row_of_span = row[np.flatnonzero(found.is_first)][np.argsort(found.span[found.is_first])]
    order = np.lexsort((rng.random(len(counts)), row_of_span))
    used = sums_in_rows(counts[order] - 1, row_of_span[order])
    most = most_answers(share, size)
    chosen = order[used <= prediction_budgets(lengths, share, most)[row_of_span[order]]]
    # The place that is kept: the last one of the span's places in random order.
    left = np.lexsort((rng.random(len(row)), found.span))[np.cumsum(counts) - 1][chosen]
    hidden = np.isin(found.span, chosen)
    hidden[left] = False
    inside, number = ranges(start[hidden], end[hidden])
    is_kept = np.arange(size) < lengths[:, None]
    is_kept[row[hidden][number], inside] = False
    masks = row[hidden], start[hidden]
    is_kept[masks] = rows.boundaries[masks] = rows.is_special[masks] = True
    rows.tokens[masks] = rule.mask_id
    # Kept tokens move to the left: is_kept [1 1 0 0 1] -> places [0 1 4 2 3].
    places = np.argsort(~is_kept, axis=1, kind="stable")
    new_lengths = np.count_nonzero(is_kept, axis=1)
    is_token = np.arange(size) < new_lengths[:, None]
    moved = (np.take_along_axis(values, places, axis=1) * is_token for values in rows)
    new_place = np.cumsum(is_kept, axis=1) - 1
    starts, ends = np.zeros((2, num_rows, most), np.int64)
    answers = Answers(starts, ends, np.zeros((num_rows, most), bool))
    # `chosen`, and therefore `left`, is ordered by sequence.
    at = row[left], sums_in_rows(np.ones_like(left), row[left]) - 1
    answers.starts[at] = new_place[row[left], start[left]]
    answers.ends[at] = new_place[row[left], end[left] - 1]
    answers.are_real[at] = True
    return Rows(*moved), new_lengths, answers


def tokens_of(answers: Answers, size: int) -> np.ndarray:
    """bool [R, S]: the tokens of answers."""
    row, number = np.nonzero(answers.are_real)
    inside, answer = ranges(answers.starts[row, number], answers.ends[row, number] + 1)
    found = np.zeros((len(answers.starts), size), bool)
    found[row[answer], inside] = True
    return found
