"""RACE is read as it is published, or from all.txt; what is wrong is named by file and line."""

import json

import pytest

from data_pipeline.errors import UserError
from data_pipeline.finetuning.race import read_race


def passage(name, letters="BD", **changes):
    """A passage with a question for each letter, which is its answer."""
    return {
        "id": name,
        "article": f"The text\nof {name}.",
        "questions": [f"Question {number} _ ?" for number in range(len(letters))],
        "options": [["a", "b", "c", f"d{number}"] for number in range(len(letters))],
        "answers": list(letters),
        **changes,
    }


@pytest.fixture
def write(tmp_path):
    def write(path, *passages):
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map(json.dumps, passages)), encoding="utf-8")
        return str(tmp_path)

    return write


def test_official_folders(write, tmp_path):
    write("RACE/dev/high/9.txt", passage("high9.txt"))
    write("RACE/dev/high/10.txt", passage("high10.txt", "C"))
    write("RACE/dev/high/._10.txt", passage("mac"))
    write("RACE/dev/high/README", passage("other"))
    write("RACE/dev/middle/7.txt", passage("middle7.txt", "A"))
    root = write("RACE/dev/middle/all.txt", passage("again"))
    split = read_race(root, "dev")
    assert [(e.guid, e.label, e.group) for e in split.examples] == [
        ("middle7.txt-0", 0, "middle"),
        ("high10.txt-0", 2, "high"),
        ("high9.txt-0", 1, "high"),
        ("high9.txt-1", 3, "high"),
    ]
    assert split.name == "dev" and split.examples == read_race(f"{root}/RACE", "dev").examples
    last = split.examples[-1]
    assert last.context == "The text\nof high9.txt." and last.question == "Question 1 _ ?"
    assert last.options == ("a", "b", "c", "d1")
    assert last.place.endswith("RACE/dev/high/9.txt:1")
    assert {e.group for e in read_race(root, "dev", ["high"]).examples} == {"high"}


def test_one_file_of_all_passages(write):
    write("train/middle/all.txt", passage("m1", "A"), passage("m2", "BC"))
    anonymous = {name: value for name, value in passage("x", "D").items() if name != "id"}
    root = write("train/high/all.txt", anonymous, anonymous)
    examples = read_race(root, "train").examples
    assert [(e.guid, e.line) for e in examples] == [
        *(("m1-0", 1), ("m2-0", 2), ("m2-1", 2)),
        *(("highall.txt:1-0", 1), ("highall.txt:2-0", 2)),
    ]


def test_questions_without_answers(write):
    unanswered = {name: value for name, value in passage("h").items() if name != "answers"}
    root = write("test/high/1.txt", unanswered)
    assert [e.label for e in read_race(root, "test", ["high"]).examples] == [None, None]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"answers": ["A"]}, ": expected as many .* found 2 questions, 2 options and 1 answers"),
        ({"options": [["a", "b", "c", "d"]]}, ": expected as many .* 2 questions, 1 options"),
        ({"answers": ["A", "E"]}, ": question 2: the answer is 'E', not A, B, C or D"),
        ({"answers": ["A", "AB"]}, ": question 2: the answer is 'AB', not A, B, C or D"),
        ({"options": [["a"] * 4, ["b"] * 3]}, ": question 2 should be a text with four texts"),
        ({"options": ["abcd", ["b"] * 4]}, ": question 1 should be a text with four texts"),
        ({"options": [["a"] * 4, ["b", "c", "d", 5]]}, ": question 2 should be a text with four"),
        ({"questions": ["a", None]}, ": question 2 should be a text with four texts"),
        ({"questions": "ab"}, ": expected a list in the field 'questions'"),
        ({"answers": None}, ": expected a list in the field 'answers'"),
        ({"article": 5}, ": expected a text in the field 'article'"),
    ],
)
def test_wrong_passages(write, changes, message):
    root = write("dev/high/1.txt", passage("h", **changes))
    with pytest.raises(UserError, match=f"dev/high/1.txt:1{message}"):
        read_race(root, "dev", ["high"])


def test_missing_files_and_splits(write):
    root = write("dev/high/1.txt", passage("h", ""))
    with pytest.raises(UserError, match=r"dev/middle has no passages such as 10229.txt"):
        read_race(root, "dev")
    with pytest.raises(UserError, match=r"dev holds passages without questions"):
        read_race(root, "dev", ["high"])
    with pytest.raises(UserError, match=r"no split 'val'; choose one of train, dev, test"):
        read_race(root, "val")
