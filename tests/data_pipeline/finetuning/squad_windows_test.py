"""Questions become the windows, masks and targets that google-research/albert makes."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_pipeline.errors import UserError
from data_pipeline.finetuning.squad_files import Answer, Question, SquadExamples, read_squad
from data_pipeline.finetuning.squad_windows import (
    WindowSettings,
    context_spans,
    make_windows,
    max_context,
)
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer

SHARED = Path(__file__).parents[3].parent / "shared"
GOLDEN = SHARED / "golden" / "finetuning" / "squad"
FEATURES = [
    *("dev_v1_384_128_64_lower", "dev_v1_96_32_16_lower"),
    *("dev_v2_384_128_64_lower", "dev_v2_96_32_16_lower"),
    *("train_v1_384_128_64_lower", "train_v1_96_48_16_lower"),
    *("train_v2_384_128_64_lower", "train_v2_96_32_16_lower", "train_v2_128_64_24_cased"),
]
CONTEXTS = ["the north of china is old", "中国", "\u0301 \u0301"]


def examples(*questions):
    return SquadExamples("dev.json", CONTEXTS, list(questions))


def question(name, text, context, answer=None, start=0):
    answers = (Answer(answer, start),) if answer else ()
    return Question(name, text, context, answers, not answer)


OLD = question("q1", "who is it in the", 0, "of china", 10)
NONE = question("q2", "who", 0)
CHINA = question("q3", "in 中", 1, "国", 1)


def make(wordpiece, *questions, sizes=(10, 2, 3), training=True):
    return make_windows(examples(*questions), wordpiece, WindowSettings(*sizes), training)


def test_a_window(wordpiece):
    windows = make(wordpiece, CHINA)
    arrays = windows.arrays()
    ids = wordpiece.encode("in 中 中国")
    row = [wordpiece.cls_id, *ids[:2], wordpiece.sep_id, *ids[2:], wordpiece.sep_id, 0, 0, 0]
    assert arrays["input_word_ids"].tolist() == [row]
    assert arrays["input_mask"].tolist() == [[1] * 7 + [0] * 3]
    assert arrays["input_type_ids"].tolist() == [[0] * 4 + [1] * 3 + [0] * 3]
    assert arrays["impossible_positions"].tolist() == [[0, 1, 1, 1, 0, 0, 1, 1, 1, 1]]
    assert [arrays[name].tolist() for name in windows.targets._fields] == [[5], [5], [0]]
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int32)}
    assert windows.offsets.tolist() == [4]
    assert windows.question_of(0) is windows.examples.questions[0]
    assert windows.context_of(0).ids.tolist() == ids[2:]


def test_long_contexts_and_questions_are_cut(wordpiece):
    """Six pieces of context in windows of four, two apart; three of five pieces of the question."""
    windows = make(wordpiece, OLD, NONE)
    pieces = wordpiece.encode(CONTEXTS[0])
    assert len(pieces) >= 6 and len(wordpiece.encode(OLD.text)) > 3
    count = np.sum(windows.question_numbers == 0)
    assert windows.starts[:2].tolist() == [0, 2] and windows.lengths[0] == 10 - 3 - 3
    assert windows.starts[count - 1] + windows.lengths[count - 1] == len(pieces)
    assert windows.lengths[count] == 10 - 1 - 3  # The room depends on the question.
    arrays = windows.arrays([1, 0])
    assert arrays["input_word_ids"][0, 5:9].tolist() == pieces[2:6]
    assert arrays["input_word_ids"][1, 1:4].tolist() == wordpiece.encode(OLD.text)[:3]


def test_targets(wordpiece):
    windows = make(wordpiece, OLD, NONE)
    first, last = (wordpiece.encode(CONTEXTS[0]).index(i) for i in wordpiece.encode("of china"))
    for number in range(len(windows)):
        start, offset = windows.starts[number], windows.offsets[number]
        is_whole = start <= first and last < start + windows.lengths[number]
        expected = (0, 0, 1)
        if is_whole and windows.question_numbers[number] == 0:
            expected = (first - start + offset, last - start + offset, 0)
        assert tuple(column[number] for column in windows.targets) == expected
    assert 0 < windows.targets.is_impossible.sum() < len(windows)


def test_without_training_there_are_no_targets(wordpiece):
    windows = make(wordpiece, CHINA, training=False)
    assert windows.targets is None and "start_positions" not in windows.arrays()


def test_max_context_is_that_of_each_question(wordpiece):
    windows = make(wordpiece, OLD, NONE, CHINA)
    for number in range(3):
        rows = np.flatnonzero(windows.question_numbers == number)
        counts = np.zeros(len(windows.context_of(rows[0]).ids), int)
        for row in rows:
            assert len(windows.max_context[row]) == windows.lengths[row]
            counts[windows.starts[row] :][: windows.lengths[row]] += windows.max_context[row]
        assert (counts == 1).all()


def test_a_paragraph_is_tokenized_once(wordpiece):
    windows = make(wordpiece, OLD, NONE)
    assert windows.context_of(0) is windows.context_of(len(windows) - 1)


def test_a_context_that_becomes_no_piece_has_no_window(wordpiece):
    windows = make(wordpiece, question("q1", "who", 2), CHINA)
    assert windows.question_numbers.tolist() == [1]
    with pytest.raises(UserError, match=r"dev\.json: no context has a piece"):
        make(wordpiece, question("q1", "who", 2))


def test_an_answer_that_becomes_no_piece_is_refused(wordpiece):
    nothing = question("q1", "who", 2, "\u0301", 0)
    with pytest.raises(UserError, match=r"dev\.json: question q1: expected an answer of at least"):
        make(wordpiece, nothing)


def test_a_question_of_30000_characters(wordpiece):
    windows = make(wordpiece, question("q1", "who " * 7500, 1), training=False)
    assert windows.offsets.tolist() == [5]


def test_settings():
    assert WindowSettings() == WindowSettings(384, 128, 64)
    assert WindowSettings(68, 1, 64).max_seq_length == 68
    with pytest.raises(UserError, match="max_seq_length should be at least 68.*received 67"):
        WindowSettings(67, 1, 64)
    with pytest.raises(UserError, match="doc_stride should be at least 1; received 0"):
        WindowSettings(doc_stride=0)


@pytest.mark.skipif(
    not GOLDEN.exists(), reason=f"NOT compared with the reference's features: {GOLDEN} is not there"
)
@pytest.mark.parametrize("name", FEATURES)
def test_windows_are_the_reference_s(name):
    split, version, *sizes, case = name.split("_")
    model = str(SHARED / "data" / "spm" / "30k-clean.model")
    windows = make_windows(
        read_squad(str(GOLDEN / f"{split}_{version}.json"), split == "train"),
        SentencePieceTokenizer(model, case == "lower"),
        WindowSettings(*map(int, sizes)),
        split == "train",
    )
    arrays = windows.arrays()
    index = json.loads((GOLDEN / "index.json").read_text("utf-8"))
    (skipped,) = [entry["skipped_examples"] for entry in index if entry["features"] == name]
    # The reference drops the questions that it cannot align.
    rows = [row for row in range(len(windows)) if windows.question_of(row).id not in skipped]
    assert len(rows) < len(windows) or not skipped
    with gzip.open(GOLDEN / f"features_{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        expected = [json.loads(line) for line in file]
    assert len(rows) == len(expected)
    for row, golden in zip(rows, expected):
        pieces = windows.context_of(row)
        part = slice(windows.starts[row], windows.starts[row] + windows.lengths[row])
        size = golden["paragraph_len"]
        found = {
            "input_ids": arrays["input_word_ids"][row, :size],
            "segment_ids": arrays["input_type_ids"][row, :size],
            "p_mask": arrays["impossible_positions"][row, :size],
            "first_document_token": windows.offsets[row],
            "tok_start_to_orig_index": pieces.starts[part],
            "tok_end_to_orig_index": np.maximum(pieces.ends[part], 0),
            "token_is_max_context": windows.max_context[row],
        }
        if split == "train":
            found.update(
                start_position=windows.targets.start_positions[row],
                end_position=windows.targets.end_positions[row],
                is_impossible=windows.targets.is_impossible[row],
            )
        else:
            found["example_index"] = windows.question_numbers[row]
        for key, value in found.items():
            np.testing.assert_array_equal(value, golden[key], key)
        assert not arrays["input_word_ids"][row, size:].any()
        assert arrays["impossible_positions"][row, size:].all()


def test_some_windows(wordpiece):
    windows = make(wordpiece, OLD, CHINA)
    rows = np.array([1, len(windows) - 1])
    some, whole = windows.chosen(rows).arrays(), windows.arrays(rows)
    assert set(some) == set(whole) and len(windows.chosen(rows)) == 2
    for name, values in whole.items():
        np.testing.assert_array_equal(some[name], values)
    assert make(wordpiece, OLD, training=False).chosen(rows[:1]).targets is None


def test_context_spans():
    assert context_spans(10, 6, 3) == [(0, 6), (3, 6), (6, 4)]
    assert context_spans(6, 6, 3) == [(0, 6)]
    assert context_spans(7, 6, 6) == [(0, 6), (6, 1)]
    assert context_spans(13, 5, 128) == [(0, 5), (5, 5), (10, 3)]  # A stride leaves no gap.
    assert context_spans(0, 6, 3) == []


def test_max_context():
    found = max_context(((0, 6), (3, 6), (6, 4)))
    assert [window.astype(int).tolist() for window in found] == [
        [1, 1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert max_context(((0, 3),))[0].tolist() == [True] * 3


def test_a_longer_window_wins_by_a_hundredth_of_its_length():
    """Piece 4 has nothing to one side of it in both windows."""
    assert max_context(((0, 5), (4, 6)))[0].tolist() == [True] * 4 + [False]
    assert max_context(((0, 5), (4, 5)))[0].tolist() == [True] * 5  # The first of equals.


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 30))
def test_every_piece_counts_once(pieces, length, stride):
    spans = context_spans(pieces, length, stride)
    counts = np.zeros(pieces, int)
    for (start, size), counted in zip(spans, max_context(tuple(spans))):
        counts[start : start + size] += counted
    assert (counts == 1).all()
