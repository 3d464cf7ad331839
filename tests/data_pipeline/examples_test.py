"""Records have google-research/albert's layout and are a function of (seed, copy, document)."""

import numpy as np
import pytest

from data_pipeline.errors import UserError
from data_pipeline.examples import ExampleMaker, PretrainingSettings
from data_pipeline.segments import Pair


@pytest.fixture(scope="module")
def sentences(tokenizer, lines):
    return [np.array(ids, np.int32) for ids in tokenizer.encode_batch(lines[:60]) if ids]


def equal(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a[name], b[name]) for a, b in zip(first, second) for name in a
    )


def test_layout(tokenizer):
    maker = ExampleMaker(PretrainingSettings(max_seq_length=16), tokenizer)
    pair = Pair(np.array([20, 21], np.int32), np.array([22, 23, 24], np.int32), 1)
    columns = maker.example(pair, np.random.default_rng(0))
    original = columns["input_ids"].copy()
    original[columns["masked_lm_positions"]] = columns["masked_lm_ids"]
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    assert original.tolist() == [cls, 20, 21, sep, 22, 23, 24, sep]
    assert columns["segment_ids"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert columns["input_mask"].tolist() == [1] * 8
    assert columns["token_boundary"][[0, 1, 3, 4, 7]].tolist() == [1] * 5
    assert columns["next_sentence_labels"].tolist() == [1]
    assert len(columns["masked_lm_ids"]) == 1 and columns["masked_lm_weights"].tolist() == [1.0]


def test_layout_without_second_segment(tokenizer):
    settings = PretrainingSettings(max_seq_length=16, sentence_objective="none")
    assert settings.max_num_tokens == 14
    pair = Pair(np.array([20, 21], np.int32), np.zeros(0, np.int32), 0)
    columns = ExampleMaker(settings, tokenizer).example(pair, np.random.default_rng(0))
    assert len(columns["input_ids"]) == 4 and not columns["segment_ids"].any()


def test_records_are_a_function_of_seed_copy_and_document(tokenizer, sentences):
    maker = ExampleMaker(PretrainingSettings(max_seq_length=32), tokenizer)
    other = ExampleMaker(PretrainingSettings(max_seq_length=32, seed=1), tokenizer)
    first, _, _ = maker.document_examples(sentences, index=5, copy=0)
    assert len(first) > 5
    assert equal(first, maker.document_examples(sentences, 5, 0)[0])
    for another in (
        maker.document_examples(sentences, 5, 1)[0],
        maker.document_examples(sentences, 6, 0)[0],
        other.document_examples(sentences, 5, 0)[0],
    ):
        assert not equal(first, another)


def test_every_record_fits(tokenizer, sentences):
    settings = PretrainingSettings(max_seq_length=32, max_predictions_per_seq=3, short_seq_prob=0.5)
    maker = ExampleMaker(settings, tokenizer)
    for copy in range(20):
        for columns in maker.document_examples(sentences, 0, copy)[0]:
            assert len(columns["input_ids"]) <= 32 and len(columns["masked_lm_ids"]) <= 3


@pytest.mark.parametrize("length, most", [(128, 19), (512, 77), (8, 1)])
def test_automatic_number_of_predictions(length, most):
    assert PretrainingSettings(max_seq_length=length).max_predictions_per_seq == most


@pytest.mark.parametrize(
    "field, value",
    [("max_seq_length", 4), ("max_predictions_per_seq", 511), ("masked_lm_prob", 0.0), ("ngram", 0),
     ("short_seq_prob", 1.5), ("dupe_factor", 0), ("sentence_objective", "x"), ("seed", -1)],
)  # fmt: skip
def test_impossible_settings_name_flag_and_value(field, value):
    with pytest.raises(UserError, match=f"--{field}.*{value}"):
        PretrainingSettings(**{field: value})
