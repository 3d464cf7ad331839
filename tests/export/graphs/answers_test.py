"""The best answers in a graph, of contexts whose every character is a piece."""

from __future__ import annotations

import types

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.tasks.squad_candidates import AnswerSettings
from data_pipeline.finetuning.squad_windows import WindowSettings
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import AlignedBatch
from export.graphs import answers as graph
from export.graphs.windows import make_windows

VOCABULARY = types.SimpleNamespace(pad_id=0, cls_id=2, sep_id=3)
CONTEXTS = ["ab é ab", "xyz"]
OFFSET = 3  # [CLS], a question of one piece, [SEP].


def parts():
    """Windows, characters and pieces of CONTEXTS, each in one window."""
    characters = Characters(tf.constant(CONTEXTS))
    places = tf.ragged.constant([list(range(len(text))) for text in CONTEXTS], tf.int32)
    pieces = AlignedBatch(places + 10, places, places)
    settings = WindowSettings(max_seq_length=32, doc_stride=9, max_query_length=4)
    questions = tf.ragged.constant([[5], [6]], tf.int32)
    windows = make_windows(questions, pieces.ids, VOCABULARY, settings, 0)
    return windows, characters, pieces


def best(starts, ends, start_scores, end_scores, **settings) -> graph.Answers:
    """Answers of spans given by place in the context; ends do not depend on the start."""
    windows, characters, pieces = parts()
    spans = graph.Spans(
        tf.constant(starts, tf.int32) + OFFSET,
        tf.constant(ends, tf.int32)[:, None] + OFFSET,
        tf.constant(start_scores, tf.float32),
        tf.constant(end_scores, tf.float32)[:, None],
    )
    return graph.best_answers(windows, spans, characters, pieces, AnswerSettings(**settings))


def test_texts_places_and_probabilities():
    answers = best([[0, 3], [1, 0]], [[1, 3], [2, 0]], [[2, 1], [5, 0]], [[2, 1], [1, 0]])
    # "ab" scores 4, "ab é" 3 (0 to 3), " é" 2, of which the space is trimmed.
    assert answers.texts[0].numpy().tolist() == [b"ab", "ab é".encode(), "é".encode()]
    weights = np.exp([4.0, 3.0, 2.0])
    np.testing.assert_allclose(answers.probabilities[0], weights / weights.sum(), rtol=1e-6)
    assert answers.starts[0].numpy().tolist() == [0, 0, 3]
    assert answers.ends[0].numpy().tolist() == [2, 4, 4]
    assert answers.byte_starts[0].numpy().tolist() == [0, 0, 3]
    assert answers.byte_ends[0].numpy().tolist() == [2, 5, 5]
    assert answers.texts[1].numpy().tolist() == [b"yz", b"xyz", b"x"]


def test_equal_texts_count_once_and_lists_end():
    """Both "ab" of the first context are one answer, the likelier one."""
    starts, ends = [[5, 0], [0, 1]], [[6, 1], [0, 1]]
    answers = best(starts, ends, [[3, 1], [1, 0]], [[3, 1], [1, 0]], max_answer_length=2)
    assert answers.texts[0].numpy().tolist() == [b"ab"]
    assert answers.starts[0].numpy().tolist() == [5]
    one = best([[0, 1], [0, 1]], [[0, 1], [0, 1]], [[1, 0]] * 2, [[1, 0]] * 2, n_best_size=1)
    assert [len(row) for row in one.texts] == [1, 1]


def test_spans_that_are_no_answers():
    """The end before the start, in the question, or too far away."""
    answers = best(
        [[2, -2], [0, 0]], [[1, 1], [2, 2]], [[9, 9]] * 2, [[9, 9]] * 2, max_answer_length=2
    )
    assert [len(row) for row in answers.texts] == [0, 0]


def test_spans_of_both_versions():
    logits = tf.constant([[0.0, 3.0, 1.0]])
    spans = graph.spans_of_logits(logits, -logits, 2)
    np.testing.assert_array_equal(spans.starts, [[1, 2]])
    np.testing.assert_array_equal(spans.ends, [[[0, 2]]])
    np.testing.assert_array_equal(spans.start_scores, [[3, 1]])
    assert graph.spans_of_logits(logits, logits, 20).starts.shape == [1, 3]
    beams = {
        "start_top_index": tf.constant([[4, 7]]),
        "start_top_log_probs": tf.constant([[-1.0, -2.0]]),
        "end_top_index": tf.constant([[5, 6, 8, 9]]),
        "end_top_log_probs": tf.constant([[-1.0, -2.0, -3.0, -4.0]]),
    }
    spans = graph.spans_of_beams(beams)
    np.testing.assert_array_equal(spans.ends, [[[5, 6], [8, 9]]])
    np.testing.assert_array_equal(spans.end_scores, [[[-1, -2], [-3, -4]]])
