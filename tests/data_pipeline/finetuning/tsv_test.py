"""Files of one's own: columns by name, labels as names or numbers, errors with file and line."""

import pytest

from data_pipeline.errors import UserError
from data_pipeline.finetuning.tsv import class_names, numbers_note, read_tsv

ROWS = 'id\ttext\tsecond\tlabel\n7\tA "good film\tIt is\t Yes \n\n8\tBad\t\tno\n'


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "data.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write


def test_reading(write):
    content = b"\xef\xbb\xbf" + ROWS.replace("\n", "\r\n").encode()
    split = read_tsv(write(content), pair_column="second")
    first, second = split.examples
    assert split.name == "data.tsv" and (first.guid, second.guid) == ("2", "4")
    assert (first.text_a, first.text_b, first.label) == ('A "good film', "It is", "Yes")
    assert (second.text_b, second.label) == ("", "no") and second.place.endswith("data.tsv:4")
    assert split.skipped_lines == (3,)
    assert "data.tsv: 1 of 3 rows are empty or lack columns and were left out" in split.note
    assert "(line 3)" in split.note
    assert read_tsv(write("text\tlabel\n\na\tb\n")).skipped_lines == (2,)
    late = read_tsv(write("\ntext\tlabel\na\tb\n"))  # The header is no example.
    assert late.skipped_lines == () and late.examples[0].place.endswith("data.tsv:3")
    unlabeled = read_tsv(write(ROWS), text_column="second", label_column=None)
    assert [(e.text_a, e.text_b, e.label) for e in unlabeled.examples] == [
        ("It is", None, None),
        ("", None, None),
    ]


def test_numbers_as_labels(write):
    path = write("text\tlabel\nx\t 2.50\ny\t-1e3\n")
    assert [e.label for e in read_tsv(path, is_regression=True).examples] == [2.5, -1000.0]
    assert [e.label for e in read_tsv(path).examples] == ["2.50", "-1e3"]
    with pytest.raises(UserError, match=r"data.tsv:2: expected a number .* 'good'"):
        read_tsv(write("text\tlabel\nx\tgood\n"), is_regression=True)


@pytest.mark.parametrize(
    "content, message",
    [
        ("", r"data.tsv:1: no column 'text' \(text\)"),
        ("text,label\na,b\n", r"data.tsv:1: the columns are separated by commas.*< .*data.tsv >"),
        ("sentence\tlabel\nx\t1\n", "data.tsv:1: no column 'text'.*sentence, label"),
        ("text\tpair\nx\t1\n", r"data.tsv:1: no column 'label' \(label\)"),
        ("text\tlabel\nx\t1\n", r"data.tsv:1: no column 'pair' \(second text\)"),
        ("text\tpair\tlabel\n", "holds a header row but no example"),
        ("text\tpair\tlabel\nx\ty\t1\nbroken\n", "data.tsv:3: expected 3 .* found 1"),
        ("text\tpair\tlabel\nx\ty\t1\tz\n", "data.tsv:2: expected 3 .* found 4"),
        ("text\tpair\tlabel\nx\ty\t \n", "data.tsv:2: the label is empty"),
    ],
)
def test_bad_files_are_named_with_the_line(write, content, message):
    with pytest.raises(UserError, match=message):
        read_tsv(write(content), pair_column="pair")


def test_names_of_classes():
    assert class_names(["b", "a", "b"], "f") == ["a", "b"]
    assert class_names(["10", "9", "0"], "f") == ["0", "9", "10"], "sorted as numbers"
    for names in (["1", "01", "2"], ["2", "01", "1"]):
        assert class_names(names, "f") == ["01", "1", "2"], "the same in every process"
    with pytest.raises(UserError, match=r"f: 'a' is the only label; two are needed"):
        class_names(["a", "a"], "f")
    with pytest.raises(UserError, match="f: no example has a label"):
        class_names([], "f")
    values = [f"{number}.5" for number in range(21)]
    assert len(class_names(values[:20], "f")) == 20
    assert len(class_names([str(number) for number in range(40)], "f")) == 40
    assert len(class_names([*values, "x"], "f")) == 22
    with pytest.raises(UserError, match=r"f: the labels are 21 different numbers such as 0.5"):
        class_names(values, "f")


def test_numbers_as_classes_are_said():
    assert numbers_note(["a", "1"]) == ""
    note = numbers_note(class_names([str(number) for number in range(40)], "f"))
    assert note.startswith("The labels are 40 numbers from 0 to 39, treated as 40 classes")
    assert "regression" in note
