"""SQuAD's JSON becomes contexts and questions; what is wrong is named by file, line, question."""

import dataclasses
import json

import pytest

from data_pipeline.errors import UserError
from data_pipeline.finetuning.squad_files import (
    Answer,
    Question,
    read_squad,
    read_squad_file,
    read_squad_split,
)

CONTEXT = "Ada wrote it in 1843."
ENTRY = {"id": "q1", "question": "When?", "answers": [{"text": "1843", "answer_start": 16}]}


def paragraph(*entries, context=CONTEXT):
    return {"context": context, "qas": list(entries)}


@pytest.fixture
def write(tmp_path):
    """Paragraphs, or the bytes of a file -> its path."""

    def write_file(*content):
        path = tmp_path / "squad.json"
        if not isinstance(content[0], bytes):
            data = {"version": "1.1", "data": [{"title": "t", "paragraphs": list(content)}]}
            content = (json.dumps(data, indent=1, ensure_ascii=False).encode(),)
        path.write_bytes(content[0])
        return str(path)

    return write_file


def test_contexts_and_questions(write):
    no_answer = {"id": "q2", "question": "Why?", "answers": [], "is_impossible": True}
    other = {"id": "q3", "question": "Who?"}
    path = write(paragraph(ENTRY, no_answer), paragraph(other, context="Nobody."))
    examples = read_squad(path)
    assert examples.source == path and examples.contexts == [CONTEXT, "Nobody."]
    assert examples.questions == [
        Question("q1", "When?", 0, (Answer("1843", 16),), False),
        Question("q2", "Why?", 0, (), True),
        Question("q3", "Who?", 1, (), False),
    ]


def test_byte_order_mark_and_windows_line_ends(write):
    data = {"data": [{"paragraphs": [paragraph(ENTRY)]}]}
    content = json.dumps(data, indent=1).replace("\n", "\r\n").encode()
    assert read_squad(write(b"\xef\xbb\xbf" + content), training=True).questions[0].id == "q1"


def test_training_needs_one_answer_at_its_place_and_evaluation_does_not(write):
    misplaced = {**ENTRY, "answers": [{"text": "1843", "answer_start": 3}]}
    unplaced = {**ENTRY, "answers": [{"text": "1843"}]}
    several = {**ENTRY, "answers": ENTRY["answers"] * 2}
    negative = {**ENTRY, "answers": [{"text": "Ada", "answer_start": -21}]}
    blank = {**ENTRY, "answers": [{"text": " ", "answer_start": 3}]}
    for entry, words in (
        (misplaced, "expected the answer '1843' at character 3 of its context, found ' wro'"),
        (unplaced, "expected the answer '1843' at character -1"),
        (several, "expected one answer for training, found 2"),
        ({**ENTRY, "answers": []}, "expected one answer for training, found 0"),
        (negative, "expected the answer 'Ada' at character -21"),
        (blank, "expected the answer ' '"),
    ):
        path = write(paragraph(entry))
        with pytest.raises(UserError, match=r"squad\.json:11: question q1: ") as error:
            read_squad(path, training=True)
        assert words in str(error.value)
        assert len(read_squad(path).questions) == 1


def test_impossible_questions_are_trained_on_whatever_their_answers(write):
    entry = {**ENTRY, "answers": [], "is_impossible": True}
    assert read_squad(write(paragraph(entry)), training=True).questions[0].is_impossible


def test_what_is_wrong_is_named_by_line(write, tmp_path):
    twice = {**ENTRY, "question": "Where?"}
    empty = paragraph({"id": "é", "question": "?"}, context=" \n")
    unnumbered = {"text": "1843", "answer_start": "16"}
    for content, words in (
        ([paragraph(ENTRY, twice)], r":11: two questions have the id q1"),
        ([empty], r":11: question é: its context is empty"),
        ([paragraph({"question": "?"})], r"json:8: expected 'id' with a value of type str"),
        ([paragraph({"id": "q1", "question": 7})], r":11: expected 'question' with a value"),
        ([{"qas": []}], r":1: expected 'context'"),
        ([paragraph({**ENTRY, "is_impossible": "false"})], ":11: expected 'is_impossible' with a "),
        ([paragraph({**ENTRY, "answers": 3})], r":11: expected 'answers' with a value of type li"),
        ([paragraph({**ENTRY, "answers": [{"answer_start": 1}]})], r":11: expected 'text'"),
        ([paragraph({**ENTRY, "answers": ["1843"]})], r":11: expected 'text'"),
        ([paragraph({**ENTRY, "answers": [unnumbered]})], ":11: question q1: answer_start shou"),
        ([paragraph()], r":1: expected at least one question"),
        ([b""], r":1: expected JSON in SQuAD's form, .*it cannot be read: Expecting value"),
        ([b'{"data":\n [}'], r":2: expected JSON"),
        ([b"[]"], r":1: expected 'data' with a value of type list, .*; found \[\]"),
        ([b"{\n\xff}"], r":2: the text is not UTF-8"),
    ):
        with pytest.raises(UserError, match=words):
            read_squad(write(*content))
    with pytest.raises(UserError, match="is a folder"):
        read_squad(str(tmp_path))
    with pytest.raises(UserError, match="does not exist"):
        read_squad(str(tmp_path / "none.json"))


def test_ids_in_escapes_are_found(write):
    """json.dump writes é as an escape unless told otherwise."""
    entries = [{"id": "é", "question": "?"}] * 2
    content = json.dumps({"data": [{"paragraphs": [paragraph(*entries)]}]}, indent=1)
    with pytest.raises(UserError, match=r"squad\.json:9: two questions have the id é"):
        read_squad(write(content.encode()))


def test_a_file_as_a_split(write):
    path = write(paragraph(ENTRY))
    split = read_squad_file(path, "dev")
    assert (split.name, split.source, split.note, len(split)) == ("dev", path, "", 1)
    assert split.content.contexts == [CONTEXT] and split.examples is split.content.questions
    copy = dataclasses.replace(split, content=split.content._replace(source="elsewhere"))
    assert copy.sha256() == split.sha256() and len(split.sha256()) == 64
    moved = {**ENTRY, "answers": [{"text": "1843", "answer_start": 15}]}
    for other in (paragraph(ENTRY, context=CONTEXT + " "), paragraph(moved)):
        assert read_squad_file(write(other), "dev").sha256() != split.sha256()
    with pytest.raises(UserError, match="at character 15"):
        read_squad_file(path, "train")


def test_splits_of_an_official_version(write, tmp_path):
    path = write(paragraph(ENTRY))
    (tmp_path / "squad.json").rename(tmp_path / "dev-v2.0.json")
    assert read_squad_split("2.0", str(tmp_path), "dev").source == path.replace("squad", "dev-v2.0")
    with pytest.raises(UserError, match="has none of the files SQuAD/train-v2.0.json"):
        read_squad_split("2.0", str(tmp_path), "train")
    with pytest.raises(UserError, match="no public test set; received predict. Give --predict_"):
        read_squad_split("2.0", str(tmp_path), "predict")
