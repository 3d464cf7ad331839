"""Windows in a graph, by hand."""

from __future__ import annotations

import types

import numpy as np
import tensorflow as tf

from data_pipeline.finetuning.squad_windows import WindowSettings
from export.graphs.windows import GraphWindows, make_windows

VOCABULARY = types.SimpleNamespace(pad_id=0, cls_id=2, sep_id=3)


def windows_of(questions, contexts, settings: WindowSettings, shortest: int = 0) -> GraphWindows:
    ragged = [
        tf.RaggedTensor.from_row_lengths(
            tf.constant([piece for text in texts for piece in text], tf.int32),
            [len(text) for text in texts],
        )
        for texts in (questions, contexts)
    ]
    return make_windows(*ragged, VOCABULARY, settings, shortest)


def test_by_hand():
    """One long context in three windows, and one without a piece, which has a window, too."""
    settings = WindowSettings(max_seq_length=11, doc_stride=3, max_query_length=2)
    context = list(range(10, 20))
    windows = windows_of([[5, 6, 7], [8]], [context, []], settings)
    ids = [
        [2, 5, 6, 3, 10, 11, 12, 13, 14, 15, 3],
        [2, 5, 6, 3, 13, 14, 15, 16, 17, 18, 3],
        [2, 5, 6, 3, 16, 17, 18, 19, 3, 0, 0],
        [2, 8, 3, 3, 0, 0, 0, 0, 0, 0, 0],
    ]
    np.testing.assert_array_equal(windows.inputs["input_word_ids"], ids)
    np.testing.assert_array_equal(windows.inputs["input_mask"], np.array(ids) != 0)
    types_of_third, impossible = (
        windows.inputs[name][2] for name in ("input_type_ids", "impossible_positions")
    )
    np.testing.assert_array_equal(types_of_third, [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0])
    np.testing.assert_array_equal(impossible, [0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(windows.rows, [0, 0, 0, 1])
    np.testing.assert_array_equal(windows.numbers, [0, 1, 2, 0])
    np.testing.assert_array_equal(windows.starts, [0, 3, 6, 0])
    np.testing.assert_array_equal(windows.lengths, [6, 6, 4, 0])
    np.testing.assert_array_equal(windows.counts, [3, 1])


def test_windows_are_as_long_as_a_beam_needs():
    settings = WindowSettings(max_seq_length=16, doc_stride=3, max_query_length=2)
    assert windows_of([[5]], [[10]], settings).inputs["input_word_ids"].shape == [1, 5]
    longer = windows_of([[5]], [[10]], settings, shortest=9).inputs
    np.testing.assert_array_equal(longer["input_mask"], [[1] * 5 + [0] * 4])
