"""Masks drawn while training: layouts, shares, and what decides the draws."""

import hashlib
import types

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.pretraining.dynamic_masking import DRAWS, GROUP, DynamicMasking
from data_pipeline.pretraining.settings import PretrainingSettings

VOCABULARY, UNK, CLS, SEP, MASK = 1000, 1, 2, 3, 4
TOKENIZER = types.SimpleNamespace(
    vocab_size=VOCABULARY, unk_id=UNK, cls_id=CLS, sep_id=SEP, mask_id=MASK,
    special_ids=(0, UNK, CLS, SEP, MASK), pieces=[f"\u2581w{i}" for i in range(VOCABULARY)],
)  # fmt: skip


def maker(swaps=True, **changes):
    objective = "sop" if swaps else "nsp"
    settings = {"max_predictions_per_seq": 10, "sentence_objective": objective, **changes}
    return DynamicMasking(PretrainingSettings(max_seq_length=64, **settings), TOKENIZER)


def records(rows):
    """Columns of records, given as (ids, boundary, length of A)."""
    return {
        "token_ids": tf.ragged.constant([row[0] for row in rows], tf.int32),
        "token_boundary": tf.ragged.constant([row[1] for row in rows], tf.int32),
        "num_tokens_a": tf.constant([[row[2]] for row in rows]),
        "next_sentence_labels": tf.zeros([len(rows), 1], tf.int32),
    }


def masked(rows, seed=0, number=7, first_row=0, **changes):
    number = tf.constant(number, tf.int64)
    columns = maker(**changes)(records(rows), seed, number, first_row)
    return {name: value.numpy() for name, value in columns.items()}


def original(batch):
    """input_ids before masking."""
    tokens = batch["input_ids"].copy()
    rows, places = np.nonzero(batch["masked_lm_weights"])
    tokens[rows, batch["masked_lm_positions"][rows, places]] = batch["masked_lm_ids"][rows, places]
    return tokens


ROW = ([20, 21, 22, 23, 24], [1, 0, 1, 1, 0], 2)


def test_layout():
    batch = masked([ROW], swaps=False)
    assert original(batch)[0, :9].tolist() == [CLS, 20, 21, SEP, 22, 23, 24, SEP, 0]
    assert batch["input_mask"][0].tolist() == [1] * 8 + [0] * 56
    assert batch["segment_ids"][0].tolist() == [0] * 4 + [1] * 4 + [0] * 56
    assert batch["next_sentence_labels"].tolist() == [[0]]
    assert batch["masked_lm_weights"].shape == (1, 10)


def test_layout_without_second_segment():
    batch = masked([(*ROW[:2], 5), ROW], swaps=False)
    assert original(batch)[0, :8].tolist() == [CLS, 20, 21, 22, 23, 24, SEP, 0]
    assert not batch["segment_ids"][0].any() and batch["input_mask"][0].sum() == 7


def test_half_of_the_pairs_are_swapped():
    batch = masked([ROW] * 2000)
    swapped = batch["next_sentence_labels"][:, 0] == 1
    assert abs(swapped.mean() - 0.5) < 4 * 0.5 / np.sqrt(2000)
    tokens = original(batch)
    assert np.all(tokens[swapped][:, :8] == [CLS, 22, 23, 24, SEP, 20, 21, SEP])
    assert np.all(tokens[~swapped][:, :8] == [CLS, 20, 21, SEP, 22, 23, 24, SEP])
    assert batch["segment_ids"][swapped].sum() == 3 * swapped.sum()


def test_shares_are_those_of_static_records():
    rng = np.random.default_rng(0)
    rows = [(rng.integers(5, VOCABULARY, 60), rng.integers(0, 3, 60) > 0, 30) for _ in range(4000)]
    rows = [(ids.tolist(), starts.astype(int).tolist(), a) for ids, starts, a in rows]
    batch = masked(rows)
    count = batch["masked_lm_weights"].sum()
    assert abs(count / batch["input_mask"].sum() - 0.15) < 0.01
    positions = batch["masked_lm_positions"][batch["masked_lm_weights"] > 0]
    labels = batch["masked_lm_ids"][batch["masked_lm_weights"] > 0]
    weights = batch["masked_lm_weights"] > 0
    inputs = np.take_along_axis(batch["input_ids"], batch["masked_lm_positions"], 1)[weights]
    for found, wanted in [(inputs == MASK, 0.8), (inputs == labels, 0.1 + 0.1 / VOCABULARY)]:
        assert abs(found.mean() - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / count)
    random = inputs[(inputs != MASK) & (inputs != labels)]
    assert random.min() == 5 and random.max() == VOCABULARY - 1
    halves = np.bincount(positions // 16, minlength=4) / len(positions)
    assert np.all(np.abs(halves - [15 / 60, 16 / 60, 15 / 60, 14 / 60]) < 0.02)


def test_seed_and_number_of_the_batch_decide_everything():
    rows = [ROW] * 50
    first, again = masked(rows), masked(rows)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    for others in (masked(rows, seed=1), masked(rows, number=8), masked(rows, seed=-1)):
        assert np.any(first["input_ids"] != others["input_ids"])


def test_runs_go_on_with_the_draws_of_earlier_versions():
    """Where they are to be others, `DRAWS` says so."""
    rows = [
        (list(range(10, 10 + n)), [int(i % 3 != 1) for i in range(n)], n // 2)
        for n in range(4, 60, 7)
    ]
    batch = masked(rows, seed=4)
    digest = hashlib.md5(b"".join(batch[name].tobytes() for name in sorted(batch))).hexdigest()
    assert (DRAWS, digest) == ("numpy, groups of 64 rows", "2f1673a35e46ca7d03e4efc58ade2b04")


def test_groups_of_a_batch_are_masked_as_in_it():
    """Which have masks of their own."""
    rows = [ROW] * (2 * GROUP + 9)
    whole = masked(rows)
    for first in (0, GROUP, 2 * GROUP):
        part = masked(rows[first : first + GROUP], first_row=first)
        for name, values in part.items():
            np.testing.assert_array_equal(values, whole[name][first : first + GROUP], err_msg=name)
    assert np.any(whole["input_ids"][:GROUP] != whole["input_ids"][GROUP : 2 * GROUP])


def test_questions_of_recurring_spans():
    """Their columns; groups draw for themselves, and answers are not masked."""
    text = [30, 31, 32, 33, 34, 30, 31, 35, 36, 37, 38, 30, 31, 39, 40, 41]
    rows = [(text, [1] * 16, 8)] * (GROUP + 5)
    number = tf.constant(3, tf.int64)

    def asked(rows, first_row=0):
        settings = PretrainingSettings(max_seq_length=64, max_predictions_per_seq=10)
        masker = DynamicMasking(settings, TOKENIZER, span_mask_share=0.1)
        columns = masker(records(rows), 0, number, first_row)
        return {name: value.numpy() for name, value in columns.items()}

    whole, part = asked(rows), asked(rows[GROUP:], first_row=GROUP)
    for name, values in part.items():
        np.testing.assert_array_equal(values, whole[name][GROUP:], err_msg=name)
    assert whole["span_starts"].shape == (GROUP + 5, 6) and whole["span_weights"].sum() == GROUP + 5
    start, end = (whole[f"span_{name}"][:, :1] for name in ("starts", "ends"))
    ids = whole["input_ids"]
    assert set(np.take_along_axis(ids, start, 1).flat) == {30}
    assert set(np.take_along_axis(ids, end, 1).flat) == {31}
    at = whole["masked_lm_positions"]
    assert not ((at >= start) & (at <= end)).any()
    assert (whole["input_mask"].sum(axis=1) == 17).all()  # Two of 19 tokens are hidden.


@pytest.mark.parametrize("others", [{}, {"segments": "dynamic", "recurring_mask_share": 0.5}])
def test_a_schedule_masks_as_its_share_of_the_step(others):
    rows = [(list(range(20, 80)) * 2, [2, *[1] * 19] * 6, 120)] * (GROUP + 5)
    if not others:
        rows = [(ids[:40], [1] * 40, 20) for ids, *_ in rows]
    others = {"max_predictions_per_seq": 24, **others}
    for number, share in ((0, 0.3), (6, 0.3), (7, 0.15), (8, 0.15)):
        found = masked(rows, number=number, mask_schedule="0.3@0,0.15@7", **others)
        expected = masked(rows, number=number, masked_lm_prob=share, **others)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)
        budget = round(share * found["input_mask"][0].sum())
        assert found["masked_lm_weights"].sum(axis=1).tolist() == [budget] * len(rows)


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_dynamic_segments_are_cut_anew_in_each_batch(objective):
    """Of 80 tokens in sentences of 20, with room for 61 or 62."""
    rows = [(list(range(100, 180)), [2, *[1] * 19] * 4, 80), (ROW[0], [2, 0, 1, 1, 0], 5)]
    changes = {"sentence_objective": objective, "segments": "dynamic"}
    lengths = [64, 8] if objective == "sop" else [64, 7]
    seen = []
    for number in range(100):
        batch = masked(rows, number=number, **changes)
        assert batch["input_mask"].sum(axis=1).tolist() == lengths
        tokens = original(batch)[0]
        text = np.sort(tokens[tokens >= 100])
        seen.append((text[0], np.diff(text).max(), batch["segment_ids"][0].sum()))
    starts, gaps, lengths_b = map(set, zip(*seen))
    assert min(starts) >= 100 and len(starts) > 5
    if objective == "none":
        assert gaps == {1} and lengths_b == {0}
    else:
        assert len(gaps) > 5 and len(lengths_b) > 3  # Tokens are cut at the border, too.


def test_rows_without_room_end():
    """A word longer than the budget, beside rows that have room: nothing waits for it."""
    batch = masked([([5] * 50, [1] + [0] * 49, 25), ROW], max_predictions_per_seq=1, swaps=False)
    assert batch["masked_lm_weights"].tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("batch", [1, 7])
def test_shapes_are_static_when_the_batch_is(batch):
    dataset = tf.data.Dataset.from_tensors(records([ROW] * batch)).enumerate()
    spec = dataset.map(lambda number, columns: maker()(columns, 0, number)).element_spec
    assert spec["input_ids"].shape == (batch, 64) and spec["masked_lm_ids"].shape == (batch, 10)
