"""The client's formats; its three kinds of model are compared in server_test.py."""

import json

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from export.client import predict_saved_model, predict_texts
from export.encoding import encode_batch
from export.predict import format_row


def test_binary_equals_keras_in_a_fresh_process_after_the_model_folder_is_gone(exports, run_module):
    texts = ["the cat", "Café in 2010, 3.0", "", "the dog " * 50]
    flags = [f"--text={text}" for text in texts]
    process = run_module(
        "export.predict", f"--model={exports.base('classifier')}", "--format=json", *flags
    )
    assert process.returncode == 0, process.stderr
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    logits = exports.models["classifier"](encode_batch(exports.vocabulary, texts, 48))
    np.testing.assert_allclose([row["logits"] for row in rows], logits, atol=1e-5)
    np.testing.assert_allclose(
        [row["probabilities"] for row in rows], tf.nn.softmax(logits), atol=1e-5
    )
    assert [row["text"] for row in rows] == texts


def test_pairs(exports):
    first, second = ["the cat", "a dog"], ["", "house"]
    rows = predict_texts(exports.base("classifier"), first, second)
    logits = exports.models["classifier"](encode_batch(exports.vocabulary, first, 48, second))
    np.testing.assert_allclose([row["logits"] for row in rows], logits, atol=1e-5)


def test_rows_for_people():
    masked = {
        "top_pieces": [["▁a", "b"], ["", ""]],
        "top_probabilities": [[0.5, 0.25], [0, 0]],
        "num_masks": 1,
    }
    assert format_row("x [MASK]", masked) == "x [MASK]\n  mask 1: ▁a 0.500  b 0.250"
    row = {"label": "red", "label_id": 1, "probabilities": [0.25, 0.75]}
    assert format_row("x", row).split() == ["0.7500", "red", "x"]
    assert format_row("x", {"value": 2.5}).split() == ["2.5000", "x"]
    assert format_row("x", {"input_mask": [1]}) == 'x\n  {"input_mask": [1]}'


def test_errors(exports):
    with pytest.raises(UserError, match="It has: classify, serving_default"):
        predict_saved_model(exports.paths["classifier"], {}, "nope")
    with pytest.raises(UserError, match="1 --text_pair for 2 --text"):
        predict_texts(exports.paths["classifier"], ["a", "b"], ["c"])
