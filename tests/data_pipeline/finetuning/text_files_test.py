"""Lines and JSON objects come with their numbers, and every error names file and line."""

import uuid

import pytest

from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.finetuning.text_files import (
    column_index,
    find_file,
    header_row,
    json_objects,
    list_field,
    numbered_lines,
    parse_number,
    text_field,
)


@pytest.fixture(params=["disk", "ram"])
def write(request, tmp_path):
    """Writes a file on the disk, or in TensorFlow's file system in memory."""
    folder = str(tmp_path) if request.param == "disk" else f"ram://{uuid.uuid4().hex}"

    def write(content, name="file.txt"):
        storage.make_folder(f"{folder}/{name}".rpartition("/")[0])
        with storage.open_file(f"{folder}/{name}", "wb") as file:
            file.write(content)
        return f"{folder}/{name}"

    return write


def test_lines(write):
    content = b"\xef\xbb\xbfa \tb\r\n\xef\xbb\xbfc\r\n\n\r\n \xc3\xa9\xe2\x80\xa8\x0c\x85".replace(
        b"\x85", b"\xc2\x85"
    )
    assert list(numbered_lines(write(content))) == [
        (1, "a \tb"),
        (2, "\ufeffc"),
        (5, " é\u2028\x0c\x85"),
    ]
    assert list(numbered_lines(write(b"", "empty.txt"))) == []


def test_lines_that_cannot_be_read(write, tmp_path):
    with pytest.raises(UserError, match="is a folder; give a file"):
        next(numbered_lines(tmp_path))
    with pytest.raises(UserError, match=r"none.txt does not exist"):
        next(numbered_lines(str(tmp_path / "none.txt")))
    lines = numbered_lines(write(b"a\n\nb\xff\nc"))
    assert next(lines) == (1, "a")
    with pytest.raises(UserError, match=r"file.txt:3: the text is not UTF-8"):
        next(lines)


def test_columns():
    lines = iter([(2, "a\tb\t\tb"), (3, "c")])
    header = header_row(lines)
    assert header == ["a", "b", "", "b"] and next(lines) == (3, "c") and header_row(lines) == []
    assert column_index("f", header, "a", "label") == 0
    with pytest.raises(UserError, match=r"f:1: 2 columns are named 'b' \(label\). Rename all but"):
        column_index("f", header, "b", "label")
    with pytest.raises(UserError, match=r"f:1: no column 'c' \(label\); .* names a, b, , b\. Is"):
        column_index("f", header, "c", "label")
    with pytest.raises(UserError, match=r"f:1: no column 'c' .* the first row names nothing\. "):
        column_index("f", [], "c", "label")


def test_numbers():
    assert [parse_number(text, "f:1") for text in ("3.800", " -1e3")] == [3.8, -1000.0]
    for wrong in ("", "good", "nan", "-inf"):
        with pytest.raises(UserError, match=f"f:1: expected a number as label; found '{wrong}'"):
            parse_number(wrong, "f:1")


def test_objects(write):
    path = write(b'\xef\xbb\xbf{"a": 1}\r\n\n{"b": [2]}')
    assert list(json_objects(path)) == [(1, {"a": 1}), (3, {"b": [2]})]
    with pytest.raises(UserError, match=r"bad.txt:2: expected one JSON object per line"):
        list(json_objects(write(b'{}\n{"a": \n', "bad.txt")))
    with pytest.raises(UserError, match=r"list.txt:1: expected a JSON object in braces.*\[3\]"):
        list(json_objects(write(b"[3]", "list.txt")))


def test_halves_of_surrogate_pairs(write, capsys):
    path = write(rb'{"a": "\ud83d b", "c": ["\ud83d\ude00", "\uD83D\uDE00\uDE00", "\\ud83d"]}')
    repaired = [(1, {"a": "\ufffd b", "c": ["😀", "😀\ufffd", r"\ud83d"]})]
    assert list(json_objects(path)) == list(json_objects(path)) == repaired
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"warning: {path}: halves of surrogate pairs, such as \\ud83d alone, are"
    )
    assert list(json_objects(write(rb'{"a": "\ud83d\ude00"}', "b.txt"))) == [(1, {"a": "😀"})]
    assert capsys.readouterr().err == ""


def test_fields():
    record = {"text": "x", "list": [1], "none": None}
    assert text_field(record, "text", "f:1") == "x" and list_field(record, "list", "f:1") == [1]
    with pytest.raises(UserError, match=r"f:1: expected a text in the field 'list'; found \[1\]"):
        text_field(record, "list", "f:1")
    with pytest.raises(UserError, match=r"f:1: expected a list in the field 'none'; found None"):
        list_field(record, "none", "f:1")
    with pytest.raises(UserError, match=r"f:2: .* field 'b' with a text; .* text, list, none\."):
        text_field(record, "b", "f:2")
    with pytest.raises(UserError, match=r"f:2: .* field 'b' with a list; found the fields none\."):
        list_field({}, "b", "f:2")


def test_files_are_found_in_the_root_and_in_the_folder_of_the_task(write):
    inside = write(b"", "root/Task/dev.tsv")
    root = inside.removesuffix("/Task/dev.tsv")
    assert find_file(root, "Task", ["val.tsv", "dev.tsv"]) == inside
    assert find_file(f"{root}/Task", "Task", ["dev.tsv"]) == inside
    # The benchmark's root comes first, then the order of the names.
    write(b"", "root/dev.tsv")
    assert find_file(root, "Task", ["dev.tsv"]) == inside
    first = write(b"", "root/Task/val.tsv")
    assert find_file(root, "Task", ["val.tsv", "dev.tsv"]) == first
    with pytest.raises(UserError, match=r"root has none of the files Task/x.tsv, x.tsv\. Give"):
        find_file(root, "Task", ["x.tsv"])
