"""Spans that may be answers: in the context, not too long, counted in one window, averaged."""

from pathlib import Path

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.squad_candidates import (
    AnswerSettings,
    Candidates,
    average,
    candidates_from_beams,
    candidates_from_logits,
    check_outputs,
)
from data_pipeline.finetuning.squad_files import Question, SquadExamples
from data_pipeline.finetuning.squad_windows import WindowSettings, make_windows
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

VOCABULARY = Path(__file__).parents[3] / "goldens" / "wordpiece" / "vocab.txt"
LENGTH = 9


@pytest.fixture(scope="module")
def windows():
    """Seven pieces in windows of five from 0 and 2, [CLS] who [SEP] at positions 0 to 2; and two
    pieces of another question.
    """
    questions = [Question("q1", "who", 0, (), False), Question("q2", "who", 1, (), False)]
    examples = SquadExamples("dev.json", ["the 北京中国 is in", "中国"], questions)
    tokenizer = WordPieceTokenizer(str(VOCABULARY))
    found = make_windows(examples, tokenizer, WindowSettings(LENGTH, 2, 3))
    assert found.starts.tolist() == [0, 2, 0] and found.lengths.tolist() == [5, 5, 2]
    return found


def logits(*rows):
    """Rows of {position: logit} -> float32 [F, S], -9 elsewhere."""
    found = np.full((len(rows), LENGTH), -9, np.float32)
    for row, values in zip(found, rows):
        for position, value in values.items():
            row[position] = value
    return found


def spans(found):
    return list(zip(*(column.tolist() for column in found)))


def test_the_likeliest_starts_and_ends(windows):
    starts = logits({4: 2, 3: 1}, {7: 3, 6: 3}, {3: 1, 4: 2})
    ends = logits({5: 1.5, 4: 4}, {7: 5, 6: 5}, {4: 7, 3: 1})
    found = candidates_from_logits(windows, starts, ends, AnswerSettings(2, 30))
    assert spans(found) == [
        (0, 1, 1, 2.0, 4.0),
        (0, 1, 2, 2.0, 1.5),
        (0, 0, 1, 1.0, 4.0),
        (0, 0, 2, 1.0, 1.5),
        (1, 5, 5, 3.0, 5.0),  # Equal logits: the first position first.
        (1, 5, 6, 3.0, 5.0),
        (1, 6, 6, 3.0, 5.0),
        (2, 1, 1, 2.0, 7.0),
        (2, 0, 1, 1.0, 7.0),
        (2, 0, 0, 1.0, 1.0),
    ]
    assert found.start_scores.dtype == np.float64


def test_what_is_no_answer(windows):
    """Question, [CLS], the last [SEP], padding, an end before the start, too long, and starts that
    count in the other window take places among the likeliest and are left out.
    """
    settings = AnswerSettings(2, 3)
    for start, end, kept in (
        (3, 4, True),
        (3, 5, True),
        (3, 6, False),  # Four pieces.
        (4, 3, False),
        (1, 3, False),
        (0, 3, False),
        (6, 7, True),
        (6, 8, False),  # The last [SEP].
        (7, 7, False),  # Piece 4 has more context in the second window.
    ):
        found = candidates_from_logits(
            windows, logits({start: 1}, {}, {}), logits({end: 1}, {}, {}), settings
        )
        assert ((found.windows == 0) & (found.start_scores + found.end_scores == 2)).any() == kept
    padding = candidates_from_logits(
        windows, logits({}, {}, {5: 1, 7: 1}), logits({}, {}, {6: 1, 8: 1}), settings
    )
    assert 2 not in padding.windows


def test_windows_are_taken_in_chunks(windows, monkeypatch):
    random = np.random.default_rng(1)
    start, end = random.normal(size=(2, 3, LENGTH)).astype(np.float32)
    whole = spans(candidates_from_logits(windows, start, end))
    monkeypatch.setattr("albert_tf.finetuning.tasks.squad_candidates._CHUNK", 2)
    assert spans(candidates_from_logits(windows, start, end)) == whole and len(whole) > 20


def beams(**changed):
    """Two starts with two ends each, for three windows."""
    values = {
        "start_top_index": [[3, 4], [7, 3], [3, 8]],
        "start_top_log_probs": [[-1, -2]] * 3,
        "end_top_index": [[3, 4, 4, 3], [7, 6, 4, 5], [4, 3, 8, 8]],
        "end_top_log_probs": [[-0.25, -0.5, -0.75, -0.125]] * 3,
    }
    return {name: np.array(changed.get(name, value)) for name, value in values.items()}


def test_each_start_of_the_beam_has_ends_of_its_own(windows):
    assert spans(candidates_from_beams(windows, beams())) == [
        (0, 0, 0, -1.0, -0.25),
        (0, 0, 1, -1.0, -0.5),
        (0, 1, 1, -2.0, -0.75),
        (1, 6, 6, -1.0, -0.25),
        (2, 0, 1, -1.0, -0.25),
        (2, 0, 0, -1.0, -0.5),
    ]
    short = candidates_from_beams(windows, beams(), AnswerSettings(max_answer_length=1))
    assert (short.starts == short.ends).all() and len(short.starts) == 4


def test_outputs_of_other_windows_are_refused(windows):
    fitting = np.zeros((3, LENGTH))
    with pytest.raises(
        UserError, match=r"shape \(3, 9\) for the 3 windows of dev.json; .*\(2, 9\)"
    ):
        candidates_from_logits(windows, fitting, np.zeros((2, LENGTH)))
    with pytest.raises(UserError, match=r"received \(3, 8\)"):
        candidates_from_logits(windows, np.zeros((3, 8)), fitting)
    for name in ("start_top_index", "start_top_log_probs", "end_top_index", "end_top_log_probs"):
        with pytest.raises(UserError, match="expected model outputs of shape"):
            candidates_from_beams(windows, beams(**{name: np.zeros((2, 4))}))
    check_outputs(windows, ((3, LENGTH), fitting))
    fitting[1, 2] = np.nan
    with pytest.raises(UserError, match=r"for dev.json; received NaN"):
        check_outputs(windows, ((3, LENGTH), fitting))


def candidates(*rows):
    columns = zip(*rows)
    kinds = (np.int32,) * 3 + (np.float64,) * 2
    return Candidates(*(np.array(column, kind) for column, kind in zip(columns, kinds)))


def test_the_mean_is_over_the_models_that_proposed_a_span():
    first = candidates((0, 4, 5, 1.0, 2.0), (0, 1, 2, 3.0, 3.0), (2, 0, 0, 1.0, 1.0))
    second = candidates((0, 0, 0, 7.0, 7.0), (0, 4, 5, 2.0, 6.0), (1, 3, 3, 5.0, 4.0))
    assert spans(average([first, second])) == [
        (0, 4, 5, 1.5, 4.0),
        (0, 1, 2, 3.0, 3.0),
        (0, 0, 0, 7.0, 7.0),
        (1, 3, 3, 5.0, 4.0),
        (2, 0, 0, 1.0, 1.0),
    ]
    assert spans(average([first])) == spans(first)


def test_the_mean_over_all_members():
    """Who did not propose a span counts with its lowest scores in the window, or of all."""
    first = candidates((0, 4, 5, 1.0, 2.0), (0, 1, 2, 3.0, 1.0), (1, 0, 0, 0.0, -1.0))
    second = candidates((0, 4, 5, 2.0, 6.0), (2, 3, 3, 5.0, 4.0))
    nothing = Candidates(*(array[:0] for array in first))
    expected = [
        (0, 4, 5, 1.5, 4.0),
        (0, 1, 2, (3.0 + 2.0) / 2, (1.0 + 6.0) / 2),
        (1, 0, 0, (0.0 + 2.0) / 2, (-1.0 + 4.0) / 2),
        (2, 3, 3, (5.0 + 0.0) / 2, (4.0 - 1.0) / 2),
    ]
    assert spans(average([first, second], "members")) == expected
    assert spans(average([first, nothing, second], "members")) == expected
    assert spans(average([first], "members")) == spans(first)


def test_settings():
    assert AnswerSettings() == AnswerSettings(20, 30)
    with pytest.raises(UserError, match="--n_best_size=0: expected an integer from 1"):
        AnswerSettings(0)
