"""Sums of columns, on a CPU and elsewhere."""

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
