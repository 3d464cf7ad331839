"""Examples from datasets and iterables of dicts; what is wrong with one is said with its number."""

import math

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.finetuning.datasets import read_dataset

ROWS = [{"text": "good", "label": 1}, {"text": "bäd", "label": 0}]


def labels_of(values, **settings):
    rows = [{"text": "a", "label": value} for value in values]
    return [example.label for example in read_dataset(rows, "train", **settings).examples]


def test_rows_become_examples():
    split = read_dataset(ROWS, "train")
    first, second = split.examples
    assert (split.name, len(split)) == ("train", 2)
    assert (first.guid, first.text_a, first.text_b, first.label) == ("1", "good", None, "1")
    assert (second.guid, second.text_a, second.label) == ("2", "bäd", "0")
    assert second.place == "train dataset:2"


@pytest.mark.parametrize(
    "data",
    [
        tf.data.Dataset.from_tensor_slices({"text": ["good", "bäd"], "label": [1, 0]}),
        (dict(row) for row in ROWS),
        [{"text": np.str_(row["text"]), "label": np.int64(row["label"])} for row in ROWS],
        [{"text": np.array(row["text"]), "label": np.array(row["label"])} for row in ROWS],
    ],
    ids=["tf.data", "generator", "scalars", "arrays"],
)
def test_all_sources_of_the_same_rows_are_equal(data):
    found, expected = read_dataset(data, "train"), read_dataset(ROWS, "train")
    assert found == expected and found.sha256() == expected.sha256()


def test_columns_have_any_names():
    rows = [{"premise": "a", "hypothesis": b"b \xc3\xa9", "gold": "yes ", "idx": [1, 2]}]
    columns = {"text": "premise", "pair": "hypothesis", "label": "gold"}
    (example,) = read_dataset(rows, "dev", **columns).examples
    assert (example.text_a, example.text_b, example.label) == ("a", "b é", "yes")
    (example,) = read_dataset(rows, "test", text="premise", label=None).examples
    assert (example.text_b, example.label) == (None, None)


def test_labels_are_names_numbers_or_unknown():
    assert labels_of([10, "x", True, 2.0, -1, None]) == ["10", "x", "1", "2", None, None]
    assert labels_of([1, 0, "no", -1], class_names=("no", "yes")) == ["yes", "no", "no", None]
    assert labels_of([1, np.float32(2.5), "3.5", -1], is_regression=True) == [1.0, 2.5, 3.5, -1.0]


def test_several_labels_are_a_list():
    values = [["b", " a "], [], np.array([1, -1, 0]), (b"c\xc3\xa9",)]
    expected = [("b", "a"), (), ("1", "0"), ("cé",)]
    assert labels_of(values, multi_label=True) == expected
    assert labels_of([[1, 0]], multi_label=True, class_names=("no", "yes")) == [("yes", "no")]
    for wrong in ("a", None, [["a"]]):
        with pytest.raises(UserError, match="train dataset:1: expected a list of labels"):
            labels_of([wrong], multi_label=True)
    with pytest.raises(UserError, match="train dataset:1: no column 'label'"):
        read_dataset([{"text": "a"}], "train", multi_label=True)


@pytest.mark.parametrize(
    "row, sentence",
    [
        ({"sentence": "a", "label": 1}, "train dataset:2: no column 'text'; .* sentence, label"),
        ({"text": "a"}, "train dataset:2: no column 'label'"),
        ({"text": 7, "label": 1}, "train dataset:2: expected a text in the column 'text'; found 7"),
        ({"text": None, "label": 1}, "found None"),
        ({"text": b"caf\xe9", "label": 1}, "'text' is not UTF-8"),
        ({"text": ["a", "b"], "label": [0, 1]}, r"found 2. .*unbatch\(\)"),
        ({"text": "a", "label": 0.5}, "found 0.5. .*is_regression=True"),
        ({"text": "a", "label": math.nan}, "expected a label in the column 'label'; found nan"),
        ({"text": "a", "label": " "}, "the label is empty"),
        (("a", 1), "received tuple. .*as_supervised"),
        ("text", "received str. .*records"),
    ],
)
def test_a_wrong_row_is_named(row, sentence):
    with pytest.raises(UserError, match=sentence):
        read_dataset([ROWS[0], row], "train")


@pytest.mark.parametrize("label", [2, -2])
def test_a_class_has_a_name(label):
    with pytest.raises(UserError, match=f"label is {label}, but there are 2 class_names"):
        labels_of([label], class_names=("no", "yes"))


def test_a_number_is_wanted_in_a_regression():
    with pytest.raises(UserError, match="found 'high'"):
        labels_of(["high"], is_regression=True)


@pytest.mark.parametrize(
    "data, sentence",
    [
        ([], "The train dataset is empty"),
        ({"train": ROWS}, "received dict. .*take one"),
        (7, "received int"),
        (tf.data.Dataset.from_tensors({"text": "a", "label": 1}).repeat(), "is infinite"),
        (tf.data.Dataset.from_tensors({"text": ["a"], "label": [1]}), "found 1. .*unbatch"),
    ],
)
def test_other_data_are_refused(data, sentence):
    with pytest.raises(UserError, match=sentence):
        read_dataset(data, "train")
