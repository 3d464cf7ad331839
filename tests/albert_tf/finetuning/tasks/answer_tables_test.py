"""Tables of predictions with texts."""

import csv

import numpy as np

from albert_tf.finetuning.tasks.answer_tables import one_cell, write_predictions

TEXTS = {"question": ['Who said "no"?', "a\tb\r\nc"], "sentence": ["Zoë.", ""]}


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_one_cell():
    assert one_cell("a\tb\r\nc") == "a b c"
    assert one_cell("a\u2028b\x0bc\x85d\x1ce") == "a b c d e"
    assert one_cell(' "quoted" ') == ' "quoted" '


def test_all_columns(tmp_path):
    path = tmp_path / "predictions.tsv"
    write_predictions(
        str(path),
        [7, 9],
        TEXTS,
        ["yes", "no"],
        labels=["yes", "yes"],
        probabilities={"yes": np.float32([0.75, 0.25]), "no": [0.25, 0.75]},
    )
    assert rows(path) == [
        ["id", "question", "sentence", "label", "prediction", "p(yes)", "p(no)"],
        ["7", 'Who said "no"?', "Zoë.", "yes", "yes", "0.750000", "0.250000"],
        ["9", "a b c", "", "yes", "no", "0.250000", "0.750000"],
    ]
    assert path.read_bytes().endswith(b"0.750000\n")


def test_numbers_without_labels(tmp_path):
    path = tmp_path / "predictions.tsv"
    write_predictions(str(path), ["a"], {"text": ["t"]}, np.float32([2.5]))
    assert rows(path) == [["id", "text", "prediction"], ["a", "t", "2.500000"]]
