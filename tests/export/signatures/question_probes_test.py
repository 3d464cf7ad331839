"""Expected answers of question answering: places that stand, and none that rounding may decide."""

import numpy as np
import pytest

from albert_tf.models import AlbertSpanLabeler, AlbertSpanLabelerV2
from export.probes import PLACES
from export.signatures import question_probes
from tests.export.signatures.question_answering_test import check_places, loaded


def places_of_probe(model, vocabulary, threshold=None):
    """(contexts, expected answers) of the probe with texts."""
    found = question_probes.expected(loaded(model, vocabulary, threshold))
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
    monkeypatch.setattr(question_probes, "_LONG_CONTEXT", "one sentence of many words " * 120)
    _, expected = places_of_probe(AlbertSpanLabelerV2(config), vocabulary)
    assert set(expected) == {"answer", "answers", "num_answers", "probabilities", "null_score"}


def test_beams_that_rounding_may_reorder_are_not_compared():
    starts = np.array([[-0.5, -1.5], [-1.0, -1e30]], np.float32)
    ends = np.array([[-0.5, -2.0, -1.0, -1.1], [-1.0, -1e30, -1e30, -1e30]], np.float32)

    def compared(starts, ends):
        outputs = {"start_top_index": 1, "start_top_log_probs": starts, "end_top_index": 2,
                   "end_top_log_probs": ends, "answer_logits": 3}  # fmt: skip
        return set(question_probes.decided_beams(outputs))

    everything = compared(starts, ends)
    assert len(everything) == 5
    close = ends.copy()
    close[0, 3] = close[0, 2] - 1e-6
    assert compared(starts, close) == everything - {"end_top_index"}
    close = starts.copy()
    close[0, 1] = close[0, 0] - 1e-6
    assert compared(close, ends) == {"start_top_log_probs", "answer_logits"}
