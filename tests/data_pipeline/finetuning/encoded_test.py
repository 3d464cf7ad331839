"""Pieces are kept without padding, a text is tokenized once, and rows are padded when asked for."""

import numpy as np
import pytest

from data_pipeline.finetuning.encoded import EncodedExamples, Slices, join, slice_indices, tokenize


def test_slices():
    starts, lengths = np.array([7, 0, 3, 5]), np.array([2, 3, 0, 1])
    assert slice_indices(starts, lengths).tolist() == [7, 8, 0, 1, 2, 5]
    nothing = np.zeros(0, np.int64)
    assert slice_indices(nothing, nothing).tolist() == []


@pytest.mark.parametrize("kind", ["tokenizer", "wordpiece"])
def test_texts_are_tokenized_as_one_by_one(kind, request, lines):
    tokenizer = request.getfixturevalue(kind)
    odd = [
        "",
        " ",
        "\n",
        "two\nlines\r\nof  text",
        "caf\u00e9\u0301 \u4f60\u597d",
        "in 2010, 1,234,",
    ]
    texts = [*odd, *lines[:200], *odd, "one\n" * 3000]
    found = tokenize(tokenizer, texts)
    for text, start, length in zip(texts, found.starts, found.lengths):
        assert found.ids[start : start + length].tolist() == tokenizer.encode(text)
    assert found.lengths.dtype == np.int64 and found.ids.dtype == np.int32


def test_a_text_is_tokenized_once(tokenizer, monkeypatch):
    seen, encode = [], tokenizer.encode_flat
    monkeypatch.setattr(tokenizer, "encode_flat", lambda texts: seen.extend(texts) or encode(texts))
    found = tokenize(tokenizer, ["a b", "c", "a b", "a b"])
    assert seen == ["a b", "c"]
    assert len(set(found.starts[[0, 2, 3]].tolist())) == 1 and len(found.starts) == 4


class SpecialIds:
    cls_id, sep_id = 101, 102


FIRST = Slices(np.array([5, 9, 7], np.int32), np.array([0, 2, 0]), np.array([2, 1, 0]))
SECOND = Slices(np.array([3, 4], np.int32), np.array([0, 0, 1]), np.array([1, 0, 1]))


def test_sequences():
    has_second = np.array([True, False, True])
    found = join(SpecialIds, FIRST, SECOND, has_second, 8)
    assert found.ids.tolist() == [101, 5, 9, 102, 3, 102, 101, 7, 102, 101, 102, 4, 102]
    assert found.lengths.tolist() == [6, 3, 4] and found.first_lengths.tolist() == [4, 3, 2]
    assert len(found) == 3 and found.ids.dtype == np.int32
    inputs = found.inputs()
    assert inputs["input_word_ids"].tolist() == [
        [101, 5, 9, 102, 3, 102, 0, 0],
        [101, 7, 102, 0, 0, 0, 0, 0],
        [101, 102, 4, 102, 0, 0, 0, 0],
    ]
    assert inputs["input_mask"].sum(axis=1).tolist() == [6, 3, 4]
    assert inputs["input_mask"][2].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert inputs["input_type_ids"].tolist() == [
        [0, 0, 0, 0, 1, 1, 0, 0],
        [0] * 8,
        [0, 0, 1, 1, 0, 0, 0, 0],
    ]
    assert {values.dtype for values in inputs.values()} == {np.dtype(np.int32)}
    # An empty second text has its separator, where there is to be one.
    assert join(SpecialIds, FIRST, SECOND, has_second | True, 8).lengths.tolist() == [6, 4, 4]


def test_some_examples():
    whole = join(SpecialIds, FIRST, SECOND, np.array([True, False, True]), 8)
    for name, values in whole.inputs([2, 0, 2]).items():
        assert values.tolist() == whole.inputs()[name][[2, 0, 2]].tolist()


def test_choices():
    rows = EncodedExamples(
        ids=np.arange(1, 13, dtype=np.int32),
        lengths=np.array([4, 2, 3, 3]),
        first_lengths=np.array([2, 2, 1, 2]),
        max_seq_length=4,
        num_choices=2,
    )
    assert len(rows) == 2
    inputs = rows.inputs()
    assert inputs["input_word_ids"].tolist() == [
        [[1, 2, 3, 4], [5, 6, 0, 0]],
        [[7, 8, 9, 0], [10, 11, 12, 0]],
    ]
    assert inputs["input_type_ids"].tolist() == [
        [[0, 0, 1, 1], [0, 0, 0, 0]],
        [[0, 1, 1, 0], [0, 0, 1, 0]],
    ]
    second = rows.inputs(np.array([1], np.int32))
    assert second["input_mask"].tolist() == [[[1, 1, 1, 0], [1, 1, 1, 0]]]
    two = SpecialIds, FIRST, SECOND, np.array([True, False, True]), 8
    assert join(*two, num_choices=3).inputs()["input_mask"].shape == (1, 3, 8)
