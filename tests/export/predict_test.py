"""The client's formats; its three kinds of model are compared in server_test.py."""

import json

import numpy as np
import pytest

from data_pipeline.errors import UserError
from export.client import predict_saved_model, predict_texts
from export.predict import format_row


def test_binary_prints_a_table_or_json(exports, run_module):
    flags = [f"--model={exports.paths['classifier']}", "--text=the cat", "--text=a dog"]
    table = run_module("export.predict", *flags)
    assert table.returncode == 0, table.stderr
    lines = table.stdout.splitlines()
    assert [line.split(maxsplit=2)[2] for line in lines] == ["the cat", "a dog"]
    rows = predict_texts(exports.base("classifier"), ["the cat", "a dog"], ["", "house"])
    process = run_module(
        "export.predict", *flags, "--text_pair=", "--text_pair=house", "--format=json"
    )
    printed = [json.loads(line) for line in process.stdout.splitlines()]
    assert [row.pop("text") for row in printed] == ["the cat", "a dog"]
    assert [row["label"] for row in printed] == [row["label"] for row in rows]
    np.testing.assert_allclose(
        [r["logits"] for r in printed], [r["logits"] for r in rows], atol=1e-5
    )


def test_rows_for_people():
    masked = {
        "top_pieces": [["▁a", "b"], ["", ""]],
        "top_probabilities": [[0.5, 0.25], [0, 0]],
        "num_masks": 1,
    }
    assert format_row("x [MASK]", masked) == "x [MASK]\n  mask 1: ▁a 0.500  b 0.250"
    row = {"label": "red", "label_id": 1, "probabilities": [0.25, 0.75]}
    assert format_row("x", row).split() == ["0.7500", "red", "x"]
    assert format_row("x", {"input_mask": [1]}) == 'x\n  {"input_mask": [1]}'


def test_errors(exports):
    with pytest.raises(UserError, match="It has: classify, serving_default"):
        predict_saved_model(exports.paths["classifier"], {}, "nope")
    with pytest.raises(UserError, match="1 --text_pair for 2 --text"):
        predict_texts(exports.paths["classifier"], ["a", "b"], ["c"])
