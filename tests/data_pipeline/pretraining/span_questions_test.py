"""Recurring spans as questions: what is hidden, what is left, where it stands."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.pretraining import span_questions
from tests.data_pipeline.pretraining.masking_test import MASK, rule, sequences
from tests.data_pipeline.pretraining.recurring_test import CONTENT, TEXT, A, B, C, find, spans_of


def ask(*pairs, share=0.5, seed=0):
    """The rows, their lengths and the answers, and the sequences as they were."""
    tokens, boundaries, special, lengths = sequences(*pairs)
    position = np.arange(tokens.shape[1])
    boundaries |= (position < lengths[:, None]) & ~special  # Words of a piece.
    is_b = (position >= [[len(a) + 2] for a, _ in pairs]) & (position < lengths[:, None])
    rows = span_questions.Rows(tokens, boundaries, special, is_b)
    content_rule, rng = rule(is_content=CONTENT), np.random.default_rng(seed)
    return *span_questions.ask(rows, lengths, share, content_rule, rng), rows


def test_one_place_is_left_and_a_mask_stands_for_each_other():
    """[CLS] a of b the c ... a of b .. c .. a of b . [SEP]: three places, and two."""
    seen = set()
    for seed in range(20):
        rows, lengths, answers, _ = ask((TEXT, [50]), seed=seed)
        assert answers.are_real.sum() == 2 and lengths[0] == len(TEXT) + 4 - 2 * 2
        tokens = rows.tokens[0, : lengths[0]].tolist()
        assert tokens.count(MASK) == 3 and tokens.count(A) == tokens.count(C) == 1
        spans = {tuple(tokens[s : e + 1]) for s, e, real in zip(*(x[0] for x in answers)) if real}
        assert spans == {tuple(TEXT[:3]), (C,)}
        assert tokens[-3:] == [3, 50, 3]
        assert np.flatnonzero(rows.is_b[0]).tolist() == [lengths[0] - 2, lengths[0] - 1]
        masks = rows.tokens == MASK
        assert rows.is_special[masks].all() and rows.boundaries[masks].all()
        assert not rows.tokens[0, lengths[0] :].any() and not rows.is_special[0, lengths[0] :].any()
        seen.add(tokens.index(A))
    assert len(seen) == 3  # Any of the three places is left.


def test_the_share_limits_the_masks():
    text = [A, B, 40, A, 41, B, 42, A, 43, B, 44, 45]
    rows, _, answers, _ = ask(*[(text, [50])] * 50, share=0.15)
    masks = (rows.tokens == MASK).sum(axis=1)
    assert set(masks) == {2} and set(answers.are_real.sum(axis=1)) == {1}  # 0.15 of 16 tokens.
    assert answers.starts.shape == (50, 2) == (50, span_questions.most_answers(0.15, 16))


def test_a_text_without_recurring_spans_stays():
    rows, lengths, answers, before = ask(([A, B], [C]), (TEXT, []))
    np.testing.assert_array_equal(rows.tokens[0], before.tokens[0])
    assert lengths[0] == 6 and answers.are_real.sum(axis=1).tolist() == [0, 2]


def test_tokens_of_answers():
    starts, ends = np.array([[1, 4], [2, 0]]), np.array([[2, 4], [2, 0]])
    answers = span_questions.Answers(starts, ends, np.array([[True, True], [True, False]]))
    found = np.argwhere(span_questions.tokens_of(answers, 6))
    assert found.tolist() == [[0, 1], [0, 2], [0, 4], [1, 2]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(14, 26), min_size=2, max_size=40), min_size=1, max_size=4),
    st.integers(0, 5),
)
def test_the_text_comes_back_when_masks_are_filled_with_answers(texts, seed):
    pairs = [(text[: len(text) // 2], text[len(text) // 2 :]) for text in texts]
    rows, lengths, answers, before = ask(*pairs, share=0.4, seed=seed)
    places = spans_of(*find(*pairs))
    for number, row in enumerate(rows.tokens):
        real = answers.are_real[number]
        left = zip(answers.starts[number][real], answers.ends[number][real])
        spans = {tuple(row[start : end + 1].tolist()) for start, end in left}
        assert len(spans) == real.sum()
        length_at = {at: len(span) for each, span, at in places if each == number and span in spans}
        original, place = before.tokens[number].tolist(), 0
        for token in row[: lengths[number]].tolist():
            assert token in (original[place], MASK)
            place += length_at[place] if token == MASK else 1
        assert not any(original[place:])
