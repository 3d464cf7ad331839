"""Masks of single pieces, and of everything but <unk>.

The oracle is google-research/albert's create_masked_lm_predictions, written again with its own
random numbers: n-grams in random order, passed over when they overlap or exceed what is left.
"""

import collections
import random

import numpy as np
import pytest

from data_pipeline.pretraining import masking

UNK, CLS, SEP, MASK, VOCABULARY = 1, 2, 3, 4, 300
BATCH, LENGTH = 1500, 40


def reference_runs(starts_word, budget, ngram, whole_words, rng):
    """Positions that google's program would mask in one segment of tokens."""
    candidates = []
    for i, starts in enumerate(starts_word):
        if whole_words and candidates and not starts:
            candidates[-1].append(i)
        else:
            candidates.append([i])
    weights = 1 / np.arange(1, ngram + 1)
    order = list(range(len(candidates)))
    rng.shuffle(order)
    taken = set()
    for first in order:
        if len(taken) >= budget:
            break
        available = candidates[first : first + ngram]
        if set(available[0]) & taken:
            continue
        size = rng.choices(range(1, len(available) + 1), weights[: len(available)])[0]
        tokens = [i for word in available[:size] for i in word]
        while len(taken) + len(tokens) > budget and size > 1:
            size -= 1
            tokens = [i for word in available[:size] for i in word]
        if len(taken) + len(tokens) > budget or set(tokens) & taken:
            continue
        taken |= set(tokens)
    return taken


def rule(**changes):
    fields = dict(rate=0.15, max_predictions=8, ngram=3, favor_shorter=True, by_span=False)
    pieces = masking.replacement_ids(VOCABULARY, (0, UNK, CLS, SEP, MASK))
    return masking.MaskingRule(**{**fields, **changes}, mask_id=MASK, replacement_ids=pieces)


def masks(ids, starts, how):
    """bool [B, tokens]: what masking.py masks in [CLS] ids [SEP]."""
    count, size = ids.shape
    tokens = np.full((count, size + 2), SEP, np.int32)
    tokens[:, 0], tokens[:, 1:-1] = CLS, ids
    special = np.zeros(tokens.shape, bool)
    special[:, [0, -1]] = True
    boundaries = special.copy()
    boundaries[:, 1:-1] = starts
    boundaries[:, 1] = True
    lengths = np.full(count, size + 2)
    rng = np.random.default_rng(3)
    made = masking.mask_sequences(tokens, boundaries, special, lengths, how, rng)
    found = np.zeros(tokens.shape, bool)
    found[made.rows, made.positions] = True
    assert not found[special].any()
    return found[:, 1:-1]


def text(seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, VOCABULARY, [BATCH, LENGTH])
    return ids, rng.random([BATCH, LENGTH]) < 0.6


def run_lengths(is_masked):
    """How many runs of neighbors there are, by length."""
    counts = collections.Counter()
    for row in is_masked:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
        counts.update((edges[1::2] - edges[::2]).tolist())
    return counts


@pytest.mark.parametrize("ngram", [1, 3])
def test_pieces_are_masked_as_the_reference_does_without_whole_words(ngram):
    ids, starts = text()
    found = masks(ids, starts, rule(ngram=ngram, whole_words=False))
    rng = random.Random(0)
    expected = np.zeros_like(found)
    for row in expected:
        row[list(reference_runs([True] * LENGTH, 6, ngram, False, rng))] = True
    assert np.all(found.sum(axis=1) == 6)  # round(0.15 * 42)
    mine, theirs = run_lengths(found), run_lengths(expected)
    for length in range(1, 5):
        spread = 6 * np.sqrt(mine[length] + theirs[length] + 1)
        assert abs(mine[length] - theirs[length]) < spread, (length, mine, theirs)
    continued = found & ~starts
    continued[:, 0] = False
    share = continued.sum() / found.sum()
    assert abs(share - 0.4) < 0.03, "pieces inside words are masked like others"


@pytest.mark.parametrize("whole_words", [True, False])
def test_unknown_pieces_are_never_predicted_on_request(whole_words):
    ids, starts = text()
    ids[np.random.default_rng(1).random(ids.shape) < 0.2] = UNK
    assert (ids == UNK)[masks(ids, starts, rule(whole_words=whole_words))].mean() > 0.15
    found = masks(ids, starts, rule(whole_words=whole_words, excluded_id=UNK))
    assert not found[ids == UNK].any()
    assert found.sum() > 0.9 * 6 * BATCH, "other words take their place"
    if whole_words:
        inside = ~starts
        inside[:, 0] = False
        same = found[:, 1:][inside[:, 1:]] == found[:, :-1][inside[:, 1:]]
        assert same.all(), "a word with an unknown piece is left alone as a whole"


def test_text_of_unknown_pieces_has_nothing_to_predict():
    ids, starts = text()
    ids[: BATCH // 2] = UNK
    found = masks(ids, starts, rule(excluded_id=UNK))
    assert not found[: BATCH // 2].any() and found[BATCH // 2 :].any(axis=1).all()
