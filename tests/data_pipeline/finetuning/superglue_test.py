"""BoolQ, CB and COPA are read from JSON lines; what is wrong is named by file and line."""

import json

import pytest

from data_pipeline.errors import UserError
from data_pipeline.finetuning.superglue import (
    BOOLQ_LABELS,
    CB_LABELS,
    read_boolq,
    read_cb,
    read_copa,
)

BOOLQ = {"question": "is it so", "passage": "It is.", "idx": 5, "label": True}
CB = {"premise": "It is so?", "hypothesis": "it is so", "label": "neutral", "idx": 3}
COPA = {
    "premise": "The glass broke.",
    "choice1": "It fell.",
    "choice2": "It rang.",
    "question": "cause",
    "label": 0,
    "idx": 8,
}


@pytest.fixture
def write(tmp_path):
    def write(folder, name, *records):
        (tmp_path / folder).mkdir(exist_ok=True)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / folder / name).write_text(lines, encoding="utf-8")
        return str(tmp_path)

    return write


def without(record, *names):
    return {name: value for name, value in record.items() if name not in names}


def test_boolq(write):
    root = write("BoolQ", "train.jsonl", BOOLQ, {**BOOLQ, "idx": 6, "label": False})
    split = read_boolq(root, "train")
    first, second = split.examples
    assert (first.text_a, first.text_b) == ("It is.", "is it so"), "the passage comes first"
    assert [first.label, second.label] == ["true", "false"] and split.name == "train"
    assert set(BOOLQ_LABELS) == {"false", "true"} and BOOLQ_LABELS[1] == "true"
    assert (first.guid, first.line, second.guid, second.line) == ("5", 1, "6", 2)
    assert first.place.endswith("BoolQ/train.jsonl:1")
    # The test split has no labels.
    write("BoolQ", "test.jsonl", without(BOOLQ, "label"))
    assert read_boolq(root, "test").examples[0].label is None


def test_boolq_as_its_makers_publish_it(write):
    record = {**without(BOOLQ, "label", "idx"), "title": "x", "answer": False}
    root = write("BoolQ", "dev.jsonl", record, record)
    assert [(e.label, e.guid) for e in read_boolq(root, "dev").examples] == [
        ("false", "dev-0"),
        ("false", "dev-1"),
    ]
    # SuperGLUE's own file comes first.
    write("BoolQ", "val.jsonl", BOOLQ)
    assert read_boolq(root, "dev").examples[0].label == "true"


def test_cb(write):
    root = write("CB", "val.jsonl", CB, without(CB, "label", "idx"))
    first, second = read_cb(root, "dev").examples
    assert (first.text_a, first.text_b) == ("It is so?", "it is so")
    assert (first.label, second.label, first.guid, second.line) == ("neutral", None, "3", 2)
    assert CB_LABELS == ("contradiction", "entailment", "neutral"), "the order of MNLI"


def test_copa(write):
    effect = {**COPA, "question": "effect", "label": 1, "idx": 9}
    root = write("COPA", "train.jsonl", COPA, effect, without(COPA, "label", "idx"))
    first, second, third = read_copa(root, "train").examples
    assert first.context == "The glass broke." and first.options == ("It fell.", "It rang.")
    assert first.question == "What was the cause of this?"
    assert second.question == "What happened as a result?"
    assert [e.label for e in (first, second, third)] == [0, 1, None]
    assert (first.group, first.guid, third.line) == ("", "8", 3)


@pytest.mark.parametrize(
    "folder, read, record, message",
    [
        ("BoolQ", read_boolq, {**BOOLQ, "label": "true"}, "expected true or false in 'label'"),
        ("BoolQ", read_boolq, without(BOOLQ, "passage"), "expected a field 'passage' with a text"),
        ("BoolQ", read_boolq, {**BOOLQ, "question": 3}, "expected a text in the field 'question'"),
        ("CB", read_cb, {**CB, "label": "Neutral"}, "the label is 'Neutral', not one of contra"),
        ("CB", read_cb, without(CB, "hypothesis"), "expected a field 'hypothesis'"),
        ("COPA", read_copa, {**COPA, "label": 2}, "expected 0 or 1 in 'label'; found 2"),
        ("COPA", read_copa, {**COPA, "label": True}, "expected 0 or 1 in 'label'; found True"),
        ("COPA", read_copa, {**COPA, "question": "why"}, "expected cause or effect .* 'why'"),
        ("COPA", read_copa, without(COPA, "choice2"), "expected a field 'choice2'"),
    ],
)
def test_wrong_records(write, folder, read, record, message):
    root = write(folder, "train.jsonl", {"BoolQ": BOOLQ, "CB": CB, "COPA": COPA}[folder], record)
    with pytest.raises(UserError, match=f"{folder}/train.jsonl:2: {message}"):
        read(root, "train")


def test_missing_files_and_splits(write):
    root = write("CB", "train.jsonl")
    with pytest.raises(UserError, match=r"train.jsonl holds no example; download the data of CB"):
        read_cb(root, "train")
    with pytest.raises(UserError, match=r"none of the files CB/val.jsonl, CB/dev.jsonl, val.jsonl"):
        read_cb(root, "dev")
    with pytest.raises(UserError, match=r"COPA has no split 'val'; choose one of train, dev, test"):
        read_copa(root, "val")
