"""Sums and maxima by row, folded or not."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import fast_switch
from albert_tf.layers.fast import reductions

X = np.random.default_rng(0).normal(size=[2, 3, 16]).astype(np.float32)


@pytest.fixture(params=[True, False], ids=["on a CPU", "elsewhere"])
def on_cpu(request, monkeypatch) -> bool:
    monkeypatch.setattr(fast_switch, "suits_cpu", lambda: request.param)
    return request.param


def test_sums_of_columns(on_cpu):
    np.testing.assert_allclose(reductions.sum_rows(tf.constant(X)), X.sum((0, 1)), atol=1e-5)


def test_sums_of_columns_are_taken_in_float32(on_cpu):
    """In bfloat16, 256 + 1 is 256."""
    found = reductions.sum_rows(tf.constant([[256.0, 1.0], *[[1.0, 1.0]] * 8], tf.bfloat16))
    assert found.dtype == tf.bfloat16
    assert tf.cast(found, tf.float32).numpy().tolist() == [264.0, 9.0]


@pytest.mark.parametrize("width", [16, 15])
def test_figures_of_rows(on_cpu, width):
    x = tf.constant(X[..., :width])
    for found, expected in (
        (reductions.row_sum(x), X[..., :width].sum(-1, keepdims=True)),
        (reductions.row_mean(x), X[..., :width].mean(-1, keepdims=True)),
        (reductions.row_max(x), X[..., :width].max(-1, keepdims=True)),
    ):
        assert found.shape == [2, 3, 1]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_eighth_of_the_columns_with_the_others_folded_onto_them(monkeypatch):
    monkeypatch.setattr(fast_switch, "suits_cpu", lambda: True)
    x = tf.range(16.0)[None]
    # 0 + 2 + ... + 14, 1 + 3 + ... + 15.
    np.testing.assert_array_equal(reductions.folded(x, tf.add), [[56.0, 64.0]])
    np.testing.assert_array_equal(reductions.folded(x, tf.maximum), [[14.0, 15.0]])
    np.testing.assert_array_equal(reductions.folded(x[:, :15], tf.add), x[:, :15])


@pytest.mark.parametrize(
    ("is_cpu", "width", "folds"),
    [
        (True, 16, True),
        (True, 8, True),
        (True, 12, False),
        (True, 9, False),
        (True, None, False),
        (False, 16, False),
    ],
)
def test_what_can_be_folded(monkeypatch, is_cpu, width, folds):
    monkeypatch.setattr(fast_switch, "suits_cpu", lambda: is_cpu)
    assert reductions.folds(tf.TensorSpec([4, width])) is folds
