"""Rows moved to places and back, and their gradients, by example."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.fast.rows import put_rows, take_rows


def places(*numbers: int) -> tf.Tensor:
    return tf.constant(numbers, tf.int64)[:, None]


@pytest.fixture(params=[False, True], ids=["eagerly", "in a graph"], autouse=True)
def form(request, fast_choice):
    fast_choice("off")
    tf.config.run_functions_eagerly(not request.param)
    yield
    tf.config.run_functions_eagerly(False)


@tf.function
def take(flat, at, upstream):
    with tf.GradientTape() as tape:
        tape.watch(flat)
        rows = take_rows(flat, at)
    return rows, tape.gradient(rows, flat, upstream)


@tf.function
def put(rows, at, size, upstream):
    with tf.GradientTape() as tape:
        tape.watch(rows)
        flat = put_rows(rows, at, size)
    return flat, tape.gradient(flat, rows, upstream)


def test_some_rows_are_taken():
    flat = tf.constant([[1.0], [2.0], [3.0], [4.0]])
    rows, gradient = take(flat, places(0, 2), tf.constant([[10.0], [30.0]]))
    np.testing.assert_array_equal(rows, [[1.0], [3.0]])
    np.testing.assert_array_equal(gradient, [[10.0], [0.0], [30.0], [0.0]])


def test_all_rows_are_taken():
    flat = tf.constant([[1.0], [2.0]])
    rows, gradient = take(flat, places(0, 1), 5 * flat)
    np.testing.assert_array_equal(rows, flat)
    np.testing.assert_array_equal(gradient, 5 * flat)


def test_rows_are_put_among_zeros():
    rows = tf.constant([[1.0], [3.0]])
    upstream = tf.constant([[10.0], [20.0], [30.0], [40.0]])
    flat, gradient = put(rows, places(1, 3), tf.constant(4), upstream)
    np.testing.assert_array_equal(flat, [[0.0], [1.0], [0.0], [3.0]])
    np.testing.assert_array_equal(gradient, [[20.0], [40.0]])


def test_rows_fill_all_places():
    rows = tf.constant([[1.0], [3.0]])
    flat, gradient = put(rows, places(0, 1), tf.constant(2), 7 * rows)
    np.testing.assert_array_equal(flat, rows)
    np.testing.assert_array_equal(gradient, 7 * rows)


def test_full_rows_are_not_moved(monkeypatch):
    """Where all rows are taken, or all places filled, nothing is gathered or scattered."""

    def moved(*unused):
        raise AssertionError("moved")

    monkeypatch.setattr("albert_tf.layers.operations.take_rows", moved)
    monkeypatch.setattr("albert_tf.layers.operations.put_rows", moved)
    if not tf.config.functions_run_eagerly():
        return  # A graph has both branches.
    rows = tf.constant([[1.0], [3.0]])
    take(rows, places(0, 1), rows)
    put(rows, places(0, 1), tf.constant(2), rows)
    with pytest.raises(AssertionError, match="moved"):
        take(rows, places(0), rows[:1])
