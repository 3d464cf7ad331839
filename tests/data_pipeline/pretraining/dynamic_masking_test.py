"""Masks drawn in a graph: the choices of masking.py, and batches as of static records."""

import functools
import hashlib

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.pretraining import masking
from data_pipeline.pretraining.dynamic_masking import DynamicMasking

VOCABULARY, CLS, SEP, MASK = 1000, 2, 3, 4


def maker(**changes):
    fields = dict(rate=0.15, max_predictions=10, ngram=3, favor_shorter=True, by_span=False)
    swaps = changes.pop("swaps", True)
    rule = masking.MaskingRule(
        **{**fields, **changes},
        mask_id=MASK,
        replacement_ids=masking.replacement_ids(VOCABULARY, (0, 1, 2, 3, 4)),
    )
    return DynamicMasking(rule, max_seq_length=64, cls_id=CLS, sep_id=SEP, swaps=swaps)


def records(rows):
    """Columns of records, given as (ids, boundary, length of A)."""
    return {
        "token_ids": tf.ragged.constant([row[0] for row in rows], tf.int32),
        "token_boundary": tf.ragged.constant([row[1] for row in rows], tf.int32),
        "num_tokens_a": tf.constant([[row[2]] for row in rows]),
        "next_sentence_labels": tf.zeros([len(rows), 1], tf.int32),
    }


@functools.cache
def graph_of(**changes):
    """Traced once for any number of rows."""
    ragged = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
    columns = {
        "token_ids": ragged,
        "token_boundary": ragged,
        "num_tokens_a": tf.TensorSpec([None, 1], tf.int32),
        "next_sentence_labels": tf.TensorSpec([None, 1], tf.int32),
    }
    seed = tf.TensorSpec([2], tf.int64)
    return tf.function(maker(**changes), input_signature=[columns, seed])


def masked(rows, seed=0, **changes):
    columns = graph_of(**changes)(records(rows), tf.constant([seed, 7], tf.int64))
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
    assert batch["token_boundary"][0, :9].tolist() == [1, 1, 0, 1, 1, 1, 0, 1, 0]
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
    assert np.all(batch["token_boundary"][swapped][:, :8] == [1, 1, 1, 0, 1, 1, 0, 1])
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


def test_a_seed_decides_everything():
    rows = [ROW] * 50
    first, again, other = masked(rows), masked(rows), masked(rows, seed=1)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    assert np.any(first["input_ids"] != other["input_ids"])


MIXED = [
    (list(range(10, 10 + n)), [int(i % 3 != 1) for i in range(n)], n // 2) for n in range(4, 60, 7)
]


def test_runs_that_began_with_older_versions_go_on():
    """The masks of commit db84dd7, equal in both stacks."""
    batch = masked(MIXED, seed=4)
    digest = hashlib.md5(b"".join(batch[name].tobytes() for name in sorted(batch))).hexdigest()
    assert digest == "712b703059440ac241a4329bb5a6b060"


@pytest.mark.parametrize("by_span", [True, False])
def test_rows_of_a_batch_are_masked_as_in_it(by_span):
    make, seed = maker(by_span=by_span), tf.constant([4, 7], tf.int64)
    whole = make(records(MIXED), seed)
    for first, end in ((0, 3), (3, 8)):
        part = make(records(MIXED[first:end]), seed, (first, end, len(MIXED)))
        for name, values in part.items():
            np.testing.assert_array_equal(values, whole[name][first:end], err_msg=name)


def test_by_span_all_pieces_of_an_ngram_share_their_fate():
    row = (list(range(10, 52)), [1, 0, 0] * 14, 21)
    for by_span in (True, False):
        batch = masked([row] * 500, ngram=1, max_predictions=6, by_span=by_span, swaps=False)
        fate = np.take_along_axis(batch["input_ids"], batch["masked_lm_positions"], 1)[:, :6]
        fate = (fate == MASK).reshape(-1, 3)
        mixed = np.mean(fate.any(axis=1) != fate.all(axis=1))
        expected = 0.0 if by_span else 1 - 0.8**3 - 0.2**3
        assert abs(mixed - expected) <= 5 * np.sqrt(expected * (1 - expected) / len(fate))
        assert abs(fate.mean() - 0.8) < 5 * np.sqrt(0.16 / len(fate))


def test_rows_without_room_end():
    """A word longer than the budget, beside rows that have room: nothing waits for it."""
    batch = masked([([5] * 50, [1] + [0] * 49, 25), ROW], max_predictions=1, swaps=False)
    assert batch["masked_lm_weights"].tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("batch", [1, 7])
def test_shapes_are_static_when_the_batch_is(batch):
    dataset = tf.data.Dataset.from_tensors(records([ROW] * batch)).map(
        lambda columns: maker()(columns, tf.constant([1, 2], tf.int64))
    )
    spec = dataset.element_spec
    assert spec["input_ids"].shape == (batch, 64) and spec["masked_lm_ids"].shape == (batch, 10)
