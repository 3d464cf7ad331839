"""Records have google-research/albert's layout."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.pretraining.columns import ColumnMaker
from data_pipeline.pretraining.segments import Pairs
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.records import example_bytes

IDS = np.array([20, 21, 22, 23, 24], np.int32)


@pytest.fixture
def text(tokenizer):
    starts = np.array([True, False, False, True, False])
    return TokenizedDocuments(IDS, np.array([0, 5]), np.array([0, 1]), starts)


def pairs(*rows):
    return Pairs(*np.array(rows, np.int64).T)


def read(columns):
    """The lists of each record."""
    found = []
    for serialized in example_bytes.encode_examples(columns):
        features = tf.train.Example.FromString(serialized).features.feature
        found.append(
            {
                name: list(getattr(value, value.WhichOneof("kind")).value)
                for name, value in features.items()
            }
        )
    return found


def test_static_layout(tokenizer, text):
    maker = ColumnMaker(PretrainingSettings(max_seq_length=10, masking="static"), tokenizer)
    rng = np.random.default_rng(0)
    made = maker.make(text, pairs((2, 3, 0, 2, 1), (0, 1, 0, 0, 0)), rng)
    swapped, single = read(made.columns)
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    for record, expected in [
        (swapped, [cls, 22, 23, 24, sep, 20, 21, sep, 0, 0]),
        (single, [cls, 20, sep, 0, 0, 0, 0, 0, 0, 0]),
    ]:
        [position], [label] = record["masked_lm_positions"][:1], record["masked_lm_ids"][:1]
        record["input_ids"][position] = label
        assert record["input_ids"] == expected
        assert record["masked_lm_weights"] == [1.0, 0.0][: len(record["masked_lm_weights"])]
    assert swapped["segment_ids"] == [0] * 5 + [1] * 3 + [0] * 2
    assert swapped["input_mask"] == [1] * 8 + [0] * 2
    assert swapped["token_boundary"] == [1, 1, 1, 0, 1, 1, 0, 1, 0, 0]
    assert swapped["next_sentence_labels"] == [1]
    assert single["segment_ids"] == [0] * 10 and single["next_sentence_labels"] == [0]
    assert (made.num_tokens, made.num_swapped, made.num_predictions) == (11, 1, 2)
    assert made.label_counts.sum() == 2


def test_dynamic_layout(tokenizer, text):
    settings = PretrainingSettings(max_seq_length=10, masking="dynamic")
    maker = ColumnMaker(settings, tokenizer)
    made = maker.make(text, pairs((0, 2, 2, 3, 0), (3, 2, 0, 0, 0)), np.random.default_rng(0))
    assert read(made.columns) == [
        {
            "token_ids": [20, 21, 22, 23, 24],
            "token_boundary": [1, 0, 1, 1, 0],
            "num_tokens_a": [2],
            "next_sentence_labels": [0],
        },
        {
            "token_ids": [23, 24],
            "token_boundary": [1, 0],
            "num_tokens_a": [2],
            "next_sentence_labels": [0],
        },
    ]
    assert (made.num_tokens, made.num_swapped, made.label_counts.sum()) == (12, 1, 7)
