"""Pieces are kept without padding, a text is tokenized once, and rows are padded when asked for."""

import dataclasses

import numpy as np
import pytest

from data_pipeline.finetuning.encoded import EncodedExamples, tokenize


@pytest.mark.parametrize("kind", ["tokenizer", "wordpiece"])
def test_texts_are_tokenized_as_one_by_one(kind, request, lines):
    tokenizer = request.getfixturevalue(kind)
    odd = ["", " ", "\n", "two\nlines\r\nof  text", "caf\u00e9\u0301 \u4f60", "in 2010, 1,234,"]
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


@pytest.mark.parametrize("num_choices", [None, 2])
def test_some_examples(num_choices):
    rows = EncodedExamples(np.arange(1, 13), np.array([4, 2, 3, 3]), np.array([2, 2, 1, 2]), 4)
    rows = dataclasses.replace(rows, num_choices=num_choices)
    inputs, chosen = rows.inputs(), [1, 0, 1]
    words = np.array([[1, 2, 3, 4], [5, 6, 0, 0], [7, 8, 9, 0], [10, 11, 12, 0]])
    shape = (len(rows), *([num_choices] if num_choices else []), 4)
    assert inputs["input_word_ids"].tolist() == words.reshape(shape).tolist()
    for name, values in rows.inputs(chosen).items():
        assert values.dtype == np.int32 and values.tolist() == inputs[name][chosen].tolist()
