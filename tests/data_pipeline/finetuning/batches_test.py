"""Batches of examples: their order, their lengths, their parts for several hosts."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.finetuning.batches import (
    Features,
    TrainingOrder,
    draw_order,
    evaluation_rows,
    finetuning_dataset,
    padded_length,
)

LENGTHS = np.random.default_rng(3).integers(5, 100, 203)


def features(lengths: np.ndarray = LENGTHS, max_seq_length: int = 100) -> Features:
    """Rows of which every piece is the row's number."""

    def inputs(rows: np.ndarray, length: int) -> dict[str, np.ndarray]:
        mask = np.arange(length) < lengths[rows][:, None]
        ids = (mask * rows[:, None]).astype(np.int32)
        return {"input_word_ids": ids, "input_mask": mask.astype(np.int32)}

    targets = {"label_ids": (np.arange(len(lengths)) % 3).astype(np.int32)}
    return Features(list(lengths), inputs, lengths, max_seq_length, targets, {})


def rows_of(dataset: tf.data.Dataset, count: int | None = None) -> list[list[int]]:
    batches = dataset if count is None else dataset.take(count)
    return [batch["row_numbers"].numpy().tolist() for batch in batches]


def test_batches_are_as_long_as_their_longest_row():
    assert padded_length(33, 128) == 64 and padded_length(64, 128) == 64
    assert padded_length(33, 50) == 50
    found = features()
    for batch in finetuning_dataset(found, 8).take(20):
        rows = batch["row_numbers"].numpy()
        length = padded_length(LENGTHS[rows].max(), 100)
        assert batch["input_word_ids"].shape == [8, length]
        np.testing.assert_array_equal(batch["input_word_ids"][:, 0], rows)
        np.testing.assert_array_equal(batch["label_ids"], rows % 3)
        np.testing.assert_array_equal(batch["example_weights"], np.ones(8))
    static = next(iter(finetuning_dataset(found, 8, static_shapes=True)))
    assert static["input_word_ids"].shape == [8, 100]
    dataset = finetuning_dataset(found, 8)
    assert dataset.element_spec["input_word_ids"].shape.as_list() == [8, None]
    dataset = finetuning_dataset(found, 8, static_shapes=True)
    assert dataset.element_spec["input_word_ids"].shape.as_list() == [8, 100]


def test_tokens_are_counted_without_padding():
    assert features().mean_tokens() == pytest.approx(LENGTHS.mean())
    many = np.arange(5000) % 50 + 1
    assert features(many).mean_tokens() == pytest.approx(25.5, rel=0.05)


@pytest.mark.parametrize("window", [1, 4, 64])
def test_every_epoch_has_each_row_once(window):
    order = TrainingOrder(LENGTHS, 8, seed=5, window=window)
    found = np.concatenate([order.rows(step) for step in range(203)])  # Eight epochs.
    for epoch in found.reshape(8, 203):
        assert sorted(epoch) == list(range(203))
    assert (found[:203] != found[203:406]).any()
    other = TrainingOrder(LENGTHS, 8, seed=6, window=window)
    assert (np.concatenate([other.rows(step) for step in range(25)]) != found[:200]).any()


def test_batches_have_rows_of_like_lengths_in_random_order():
    sorted_, mixed = (TrainingOrder(LENGTHS, 8, 5, window) for window in (64, 1))
    for epoch_start in (1, 26):  # Batches within an epoch.
        steps = range(epoch_start, epoch_start + 24)
        ranges = [np.ptp(LENGTHS[sorted_.rows(step)]) for step in steps]
        wide = [np.ptp(LENGTHS[mixed.rows(step)]) for step in steps]
        assert max(ranges) < min(wide)
        means = [LENGTHS[sorted_.rows(step)].mean() for step in steps]
        assert np.any(np.diff(means) < 0) and np.any(np.diff(means) > 0)  # Batches are shuffled.
    order = mixed.rows(0).tolist()
    assert order != sorted(order)


def test_fewer_rows_than_a_batch():
    order = TrainingOrder(np.array([3, 4, 5]), 8, seed=1)
    found = np.concatenate([order.rows(step) for step in range(3)])
    for epoch in found.reshape(8, 3):
        assert sorted(epoch) == [0, 1, 2]


def test_random_order_is_that_of_every_version():
    assert draw_order(8, 1, 2).tolist() == [7, 1, 3, 0, 4, 2, 6, 5]
    assert draw_order(8, -1, 2).tolist() != draw_order(8, 1, 2).tolist()
    assert draw_order(0, 1).tolist() == []


def test_a_run_goes_on_at_any_batch():
    found = features()
    whole = rows_of(finetuning_dataset(found, 8, seed=4), 60)
    for start in (1, 25, 26, 51):
        rest = finetuning_dataset(found, 8, seed=4, start_step=start)
        assert rows_of(rest, 9) == whole[start : start + 9]


def test_evaluation_has_each_row_once_the_longest_first():
    rows = evaluation_rows(np.array([5, 9, 7, 9, 1]), 2)
    assert rows.tolist() == [[1, 3], [2, 0], [4, -1]]
    batches = list(finetuning_dataset(features(), 50, training=False))
    assert len(batches) == 5
    weights = np.concatenate([batch["example_weights"] for batch in batches])
    numbers = np.concatenate([batch["row_numbers"] for batch in batches])
    assert weights.sum() == 203 and (weights == 0).tolist() == (numbers == -1).tolist()
    assert sorted(numbers[numbers >= 0]) == list(range(203))
    sizes = [batch["input_word_ids"].shape[1] for batch in batches]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 100 and sizes[-1] < 64


@pytest.mark.parametrize("training", [True, False])
def test_hosts_share_a_batch(training):
    whole = list(finetuning_dataset(features(), 10, training=training).take(3))
    parts = []
    for host in range(3):
        context = tf.distribute.InputContext(3, host, 3)
        options = {"training": training, "input_context": context}
        parts.append(list(finetuning_dataset(features(), 10, **options).take(3)))
    for number, batch in enumerate(whole):
        for name in ("row_numbers", "input_word_ids"):  # Of one length on all hosts.
            joined = np.concatenate([part[number][name] for part in parts])
            np.testing.assert_array_equal(joined, batch[name])


def test_impossible_batches():
    with pytest.raises(UserError, match="The batch size should be at least 1; received 0"):
        finetuning_dataset(features(), 0)
