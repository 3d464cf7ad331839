"""Answers in the graph equal the fine-tuning path's, and stand where the offsets say."""

import random
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.finetuning.tasks import squad_answers, squad_candidates
from albert_tf.models import AlbertSpanLabeler, AlbertSpanLabelerV2
from data_pipeline.finetuning.squad_files import Question, SquadExamples
from data_pipeline.finetuning.squad_windows import (
    WindowSettings,
    context_spans,
    make_windows,
    max_context,
)
from data_pipeline.tokenizers.normalization import is_mark
from export.graphs import windows
from export.probes import PLACES
from export.signatures import question_answering
from export.signatures.common import ROWS_AT_A_TIME
from export.signatures.question_answering import N_BEST, QuestionAnsweringModule
from tests.export.conftest import loaded_as, rows

CONTEXTS = (
    "The cat looked at the river; the dog runs slowly to a café in Paris, France.",
    "Crème brûlée at the oﬃce – ﬁgs, and Cafe\u0301s in İstanbul… ½ of ΟΔΟΣ, 10,000.",
    "中文 and 日本語 in the house 👩‍👩‍👧, then\u2003\t a\xa0dog 🏳️‍🌈 runs.",
    "the cat " * 90,
    "",
    " \u200b\n",
    "In 2010, every man who looked at 3.0 (maybe) returns the largest value.",
)
QUESTIONS = ("Who looked?", "Café?", "", "the cat " * 30, "what", "a", "in 2010,")
WINDOWS = WindowSettings(48, 8, 12)


def loaded(model, vocabulary, threshold=None):
    """A model that is asked with WINDOWS; None: every question is answered."""
    metrics = {} if threshold is None else {"null_score_diff_threshold": threshold}
    return loaded_as(model, vocabulary, doc_stride=8, max_query_length=12, metrics=metrics)


@pytest.fixture(scope="module", params=rows(["span_labeler", "span_labeler_v2"], "span_labeler_v2"))
def asked(request, keras_models, vocabulary):
    """(model, questions and contexts -> the graph's answers); no question is refused."""
    model = keras_models[request.param]
    module = QuestionAnsweringModule(loaded(model, vocabulary))

    def ask(questions, contexts):
        answer = module.serve_text(tf.constant(questions), tf.constant(contexts))
        return {name: value.numpy() for name, value in answer.items()}

    return model, ask


def by_finetuning(model, vocabulary, questions, contexts):
    """The answers of fine-tuning, and the null odds of version 2.0."""
    asked = [Question(str(i), text, i, (), False) for i, text in enumerate(questions)]
    windows = make_windows(SquadExamples("here", list(contexts), asked), vocabulary, WINDOWS)
    arrays = {name: tf.constant(value) for name, value in windows.arrays().items()}
    outputs = {name: each.numpy() for name, each in model(arrays, training=False).items()}
    if "answer_logits" in outputs:
        found = squad_candidates.candidates_from_beams(windows, outputs)
        odds = squad_answers.null_odds(windows, [outputs["answer_logits"]])
        return squad_answers.best_answers(windows, [found]), list(odds.values())
    logits = outputs["start_logits"], outputs["end_logits"]
    found = squad_candidates.candidates_from_logits(windows, *logits)
    return squad_answers.best_answers(windows, [found]), None


def check(model, vocabulary, questions, contexts, answer):
    best, odds = by_finetuning(model, vocabulary, questions, contexts)
    if odds is not None:
        np.testing.assert_allclose(answer["null_score"], odds, atol=1e-5)
    for row, found in enumerate(best.values()):
        count = int(answer["num_answers"][row])
        scores = [each.start_log_prob + each.end_log_prob for each in found]
        if scores[0] < -1e6:
            assert count == 0 and answer["answer"][row] == b""
            continue
        assert count == min(len(found), N_BEST)
        expected = [each.probability for each in found[:count]]
        np.testing.assert_allclose(answer["probabilities"][row, :count], expected, atol=1e-5)
        gaps = np.abs(np.diff(scores[: count + 1]))
        if not (gaps < 1e-5).any():  # Those of one score may change places.
            texts = [text.decode() for text in answer["answers"][row, :count]]
            assert texts == [each.text for each in found[:count]]


def check_places(contexts, answer):
    """text[start:end] is the answer, in characters and in bytes; no mark of its last letter is cut
    off.
    """
    for row, context in enumerate(contexts):
        for column in range(int(answer["num_answers"][row])):
            text = answer["answers"][row, column]
            start, end = answer["starts"][row, column], answer["ends"][row, column]
            assert context[start:end] == text.decode() == text.decode().strip()
            assert not text or not is_mark(context[end : end + 1] or " ")
            start, end = answer["byte_starts"][row, column], answer["byte_ends"][row, column]
            assert context.encode()[start:end] == text
        assert (answer["starts"][row, int(answer["num_answers"][row]) :] == -1).all()


def test_answers_equal_those_of_finetuning(asked, vocabulary):
    model, ask = asked
    answer = ask(QUESTIONS, CONTEXTS)
    check(model, vocabulary, QUESTIONS, CONTEXTS, answer)
    check_places(CONTEXTS, answer)
    assert answer["num_answers"][:4].min() > 0 and answer["num_answers"][4] == 0
    best = zip(answer["answer"], answer["start"], answer["end"])
    for (text, start, end), context in zip(best, CONTEXTS):
        assert start == -1 or context[start:end].encode() == text


def test_answers_end_after_the_marks_of_their_last_letter(asked, vocabulary):
    """In decomposed text, with two marks on one letter, before white space, and at the end."""
    model, ask = asked
    contexts = [
        unicodedata.normalize("NFD", "Dvořák wrote çà et là, à la ở à"),
        "the H\u0337 cat\u0301 \u0301dog\u0300\u0489\u20dd, \u0642\u064e",
    ]
    answer = ask(["Who?", "what"], contexts)
    check(model, vocabulary, ["Who?", "what"], contexts, answer)
    check_places(contexts, answer)
    texts = [text.decode()[-1:] for text in answer["answers"].ravel()]
    assert any(is_mark(last or " ") for last in texts)


def test_more_windows_than_are_read_at_once(asked, vocabulary):
    model, ask = asked
    known = ["cat", "dog", "house", "river", "water", "runs", "fast,", "looked", "in", "2010"]
    words = random.Random(0).choices(known, k=700)
    questions, contexts = ["Who looked?", "what"], [" ".join(words), "the cat"]
    answer = ask(questions, contexts)
    check(model, vocabulary, questions, contexts, answer)
    check_places(contexts, answer)
    assert len(words) > ROWS_AT_A_TIME * WINDOWS.doc_stride


LETTERS = st.sampled_from("abc dogT 09,.ﬁ½éÉ\u0301İßᾳ\xa0\u2003\n한中👧\u200d\ufeff")


@settings(max_examples=25, deadline=None)
@given(st.text(LETTERS, max_size=120), st.text(LETTERS, max_size=20))
def test_any_context(asked, vocabulary, context, question):
    model, ask = asked
    contexts, questions = [context, "the cat"], [question, "who"]
    answer = ask(questions, contexts)
    check(model, vocabulary, questions, contexts, answer)
    check_places(contexts, answer)


def test_windows_are_those_of_finetuning(vocabulary):
    texts = [question or "x" for question in QUESTIONS[:4]]
    contexts = CONTEXTS[:4]
    asked = [Question(str(i), text, i, (), False) for i, text in enumerate(texts)]
    expected = make_windows(SquadExamples("here", list(contexts), asked), vocabulary, WINDOWS)
    ids = [
        tf.ragged.constant([vocabulary.encode(text) for text in each], tf.int32)
        for each in (texts, contexts)
    ]
    found = windows.make_windows(*ids, vocabulary, WINDOWS, 1)
    np.testing.assert_array_equal(found.rows, expected.question_numbers)
    np.testing.assert_array_equal(found.starts, expected.starts)
    longest = found.inputs["input_mask"].shape[1]
    assert longest == found.inputs["input_mask"].numpy().sum(axis=1).max()
    for_beams = windows.make_windows(*ids, vocabulary, WINDOWS, longest + 4)
    for inputs in (found.inputs, for_beams.inputs):
        for name, value in expected.arrays(length=inputs["input_mask"].shape[1]).items():
            np.testing.assert_array_equal(inputs[name], value, err_msg=name)
    assert for_beams.inputs["input_mask"].shape[1] == longest + 4


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 12))
def test_a_piece_counts_where_it_has_most_context(vocabulary, pieces, room, stride):
    sizes = WindowSettings(room + 4, stride, 1)
    contexts = tf.ragged.constant([[7] * pieces], tf.int32)
    found = windows.make_windows(
        tf.ragged.constant([[5]], tf.int32), contexts, vocabulary, sizes, 1
    )
    spans = tuple(context_spans(pieces, room, stride))
    assert list(zip(found.starts.numpy(), found.lengths.numpy())) == list(spans)
    places = found.starts[:, None] + tf.range(room)
    counted = found.has_most_context(places).numpy()
    for row, expected in enumerate(max_context(spans)):
        np.testing.assert_array_equal(counted[row, : len(expected)], expected)


def test_an_answer_above_the_threshold_is_none(answers):
    """The model's own threshold, and the answers there would be."""
    contexts = [text for text in CONTEXTS if text.strip(" \u200b\n")]
    found = answers("question_answering", question=["who"] * len(contexts), context=contexts)
    refused = found["null_score"] > found["threshold"]
    for row, is_refused in enumerate(refused):
        if is_refused:
            assert (found["answer"][row], found["start"][row], found["end"][row]) == (b"", -1, -1)
        else:
            assert found["answer"][row] == found["answers"][row, 0]
    assert (found["num_answers"] > 0).all()


def test_padding_is_never_an_answer(config, vocabulary):
    """Whatever a client fills up `impossible_positions` with."""
    module = QuestionAnsweringModule(loaded(AlbertSpanLabelerV2(config), vocabulary))
    ids = tf.random.uniform([1, 20], 5, config.vocab_size, tf.int32, seed=1)
    mask = tf.constant([[1] * 12 + [0] * 8])
    zeros = tf.zeros_like(ids)
    found = [module.serve_tokens(ids, mask, zeros, given) for given in (zeros, 1 - mask)]
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name])


def places_of_probe(model, vocabulary, threshold=None):
    """(contexts, expected answers) of the probe with texts."""
    found = question_answering.expected(loaded(model, vocabulary, threshold))
    contexts = [context.decode() for context in found.asked["context"]]
    return contexts, found.answers["serving_default"]


@pytest.mark.parametrize("model_class", [AlbertSpanLabeler, AlbertSpanLabelerV2])
def test_probes_tell_where_answers_are(config, vocabulary, model_class):
    contexts, expected = places_of_probe(model_class(config), vocabulary)
    counts = (expected["answers"] != b"").sum(axis=1)
    assert counts.min() > 0
    check_places(contexts, {**expected, "num_answers": counts})
    for name in PLACES:
        np.testing.assert_array_equal(expected[name[:-1]], expected[name][:, 0])


def test_probes_tell_that_refused_answers_are_nowhere(config, vocabulary):
    model = AlbertSpanLabelerV2(config)
    threshold = float(np.median(places_of_probe(model, vocabulary)[1]["null_score"])) + 1e-3
    _, expected = places_of_probe(model, vocabulary, threshold)
    is_refused = expected["null_score"] > threshold
    assert 0 < is_refused.sum() < len(is_refused)
    np.testing.assert_array_equal(expected["start"] == -1, is_refused)
    assert expected["starts"].min(axis=0)[0] >= 0, "those there would be"


def test_probes_leave_out_places_that_are_not_decided(config, vocabulary, monkeypatch):
    """Windows that are alike have the same answers in several places."""
    monkeypatch.setattr(question_answering, "_LONG_CONTEXT", "one sentence of many words " * 120)
    _, expected = places_of_probe(AlbertSpanLabelerV2(config), vocabulary)
    assert set(expected) == {"answer", "answers", "num_answers", "probabilities", "null_score"}


def test_beams_that_rounding_may_reorder_are_not_compared():
    starts = np.array([[-0.5, -1.5], [-1.0, -1e30]], np.float32)
    ends = np.array([[-0.5, -2.0, -1.0, -1.1], [-1.0, -1e30, -1e30, -1e30]], np.float32)

    def compared(starts, ends):
        outputs = {"start_top_index": 1, "start_top_log_probs": starts, "end_top_index": 2,
                   "end_top_log_probs": ends, "answer_logits": 3}  # fmt: skip
        return set(question_answering.decided_beams(outputs))

    everything = compared(starts, ends)
    assert len(everything) == 5
    close = ends.copy()
    close[0, 3] = close[0, 2] - 1e-6
    assert compared(starts, close) == everything - {"end_top_index"}
    close = starts.copy()
    close[0, 1] = close[0, 0] - 1e-6
    assert compared(close, ends) == {"start_top_log_probs", "answer_logits"}
