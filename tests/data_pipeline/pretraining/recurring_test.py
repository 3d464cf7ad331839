"""Recurring spans: what a search that tries every span finds; and masks of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.pretraining import masking, recurring
from tests.data_pipeline.pretraining.masking_test import rule, sequences

CONTENT = np.arange(1000) >= 20  # Pieces from 5 to 19 are of function words.
# Each word of `text` is a piece of this number; 3 is [SEP].
A, B, C, D, OF, THE = 22, 25, 28, 31, 10, 13


def find(*pairs):
    tokens, boundaries, special, lengths = sequences(*pairs)
    boundaries |= (np.arange(tokens.shape[1]) < lengths[:, None]) & ~special  # Words of a piece.
    words = masking.find_words(boundaries, special)
    return tokens, words, recurring.find_recurring(tokens, words, CONTENT)


def spans_of(tokens, words, found):
    """[(sequence, the tokens of the span, position)] of each place."""
    rows = np.searchsorted(words.first, found.first, side="right") - 1
    ends = words.ends[found.end - 1]
    return [
        (row, tuple(tokens[row, start:end].tolist()), start)
        for row, start, end in zip(rows.tolist(), words.starts[found.first].tolist(), ends.tolist())
    ]


def test_spans_are_as_long_as_they_can_be():
    found = find(([A, OF, B, THE, C, D], [OF, B, A, OF, B, C]), ([A, B], [D]))
    # "a of b" is one span; "b" alone is left once; function words at the ends do not belong to it.
    assert spans_of(*found) == [
        (0, (A, OF, B), 1),
        (0, (C,), 5),
        (0, (A, OF, B), 10),
        (0, (C,), 13),
    ]
    assert found[2].is_first.tolist() == [True, True, False, False]
    assert found[2].span[0] == found[2].span[2] != found[2].span[1] == found[2].span[3]


def test_function_words_segments_and_sequences_limit_spans():
    assert not spans_of(*find(([OF, THE], [OF, THE])))
    assert not spans_of(*find(([A], [B]), ([A], [B])))
    # The same two words, once across [SEP].
    spans = spans_of(*find(([A, B, OF, A], [B, D])))
    assert spans == [(0, (A,), 1), (0, (B,), 2), (0, (A,), 4), (0, (B,), 6)]


def test_long_passages_are_cut():
    passage = list(range(30, 45))
    spans = spans_of(*find(([*passage, OF, A, B], passage)))
    assert [len(span) for _, span, _ in spans] == [10, 5, 10, 5]


def brute_force(row, breaks):
    """{span: its places} by trying all spans, longest first; of one row of words of a piece."""
    taken, found = np.zeros(len(row), bool), {}
    for size in range(recurring.MAX_TOKENS, 0, -1):
        places = {}
        for start in range(len(row) - size + 1):
            span = tuple(row[start : start + size])
            if (
                not (taken | breaks)[start : start + size].any()
                and CONTENT[[span[0], span[-1]]].all()
            ):
                places.setdefault(span, []).append(start)
        starts = sorted(s for each in places.values() if len(each) > 1 for s in each)
        apart = {s for before, s in zip([-size, *starts], starts) if s - before >= size}
        for span, each in places.items():
            each = [start for start in each if start in apart]
            if len(each) > 1:
                found[span] = each
                for start in each:
                    taken[start : start + size] = True
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(16, 23), min_size=2, max_size=40), min_size=1, max_size=4))
def test_the_search_equals_one_that_tries_all(texts):
    tokens, words, found = find(
        *((text[: len(text) // 2], text[len(text) // 2 :]) for text in texts)
    )
    wanted = set()
    for number, row in enumerate(tokens):
        for span, places in brute_force(row, row < 5).items():
            wanted |= {(number, span, place) for place in places}
    spans = spans_of(tokens, words, found)
    assert set(spans) == wanted and len(spans) == len(wanted)
    seen = [(row, span) for row, span, _ in spans]
    assert found.is_first.tolist() == [each not in seen[:n] for n, each in enumerate(seen)]


TEXT = [A, OF, B, THE, C, 40, 41, 42, 43, 44, A, OF, B, 45, 46, C, 47, 48, A, OF, B, 49]


def masked(share, seed=0, rows=400, **changes):
    tokens, boundaries, special, lengths = sequences(*[(TEXT, [50, 51, 52])] * rows)
    boundaries |= (np.arange(tokens.shape[1]) < lengths[:, None]) & ~special
    the_rule = rule(rate=0.3, recurring_share=share, is_content=CONTENT, **changes)
    rng = np.random.default_rng(seed)
    return masking.mask_sequences(tokens, boundaries, special, lengths, the_rule, rng), tokens


LATER, FIRST = [[11, 12, 13], [19, 20, 21], [16]], [1, 2, 3, 5]  # Positions of TEXT's copies.


def test_recurring_masks_are_whole_later_spans():
    """As many as the budget of 8 has room for, and the rest elsewhere, but not at first places."""
    for share in (1.0, 0.5):
        result, tokens = masked(share)
        is_masked = np.zeros(tokens.shape, bool)
        is_masked[result.rows, result.positions] = True
        wholes = np.stack([is_masked[:, span].all(axis=1) for span in LATER], axis=1)
        assert (is_masked.sum(axis=1) <= 8).all() and is_masked.sum(axis=1).mean() > 7.9
        if share == 1.0:
            assert wholes.all() and not is_masked[:, FIRST].any()
        else:
            assert (wholes.mean(axis=0) > 0.3).all() and (wholes.mean(axis=0) < 0.9).all()
            assert not is_masked[wholes[:, :2].any(axis=1)][:, [1, 2, 3]].any()


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_the_share_is_met_on_average(share):
    tokens, words, found = find(*[(TEXT, [50, 51, 52])] * 4000)
    budgets = np.full(len(tokens), 8)
    rng = np.random.default_rng(0)
    copies, kept, used = recurring.choose_copies(found, words, budgets, share, None, rng)
    assert abs(used.mean() / 8 - share) < 0.01 and used.sum() == np.count_nonzero(copies)
    assert set(np.flatnonzero(copies)) < set(kept.tolist())


def test_words_that_are_not_to_be_predicted_stay():
    result, _ = masked(1.0, excluded_id=C)
    assert C not in result.labels


def test_without_a_share_nothing_else_is_drawn():
    tokens, boundaries, special, lengths = sequences(*[(TEXT, [50, 51])] * 20)
    results = [
        masking.mask_sequences(
            tokens, boundaries, special, lengths, each, np.random.default_rng(1)
        ).tokens
        for each in (rule(), rule(recurring_share=0.0, is_content=CONTENT))
    ]
    np.testing.assert_array_equal(*results)


def test_content_pieces(tokenizer):
    content = dict(zip(tokenizer.pieces, recurring.content_pieces(tokenizer)))
    assert not any(content[piece] for piece in ("[CLS]", "<unk>", "\u2581the", "\u2581"))
    assert sum(content.values()) > len(content) / 2
