"""The format of a file is found in its name and content."""

import gzip

import pytest

from data_pipeline.corpus.blocks import read_blocks
from data_pipeline.corpus.formats import FORMATS, Beginning, examine
from data_pipeline.errors import UserError


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("a.txt", "One sentence here.\nAnother one.\n", "lines"),
        ("a.txt", "One sentence here. Another one.\n", "paragraphs"),
        ("a.jsonl.gz", "", "jsonl"),
        ("a.json", "", "jsonl"),
        ("wiki_00", "\n<doc id=1>\n", "wikiextractor"),
        ("a.txt", "", "lines"),
    ],
)
def test_formats_are_detected(tmp_path, name, text, expected):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert examine(str(path), "auto", "text")[0].name == expected


ENDS_INSIDE = [
    "He left. She stayed", "Over! Then more", "He said “no.” Then", "It ended.) The next",
    "今天。明天", "「はい。」そう", "End. É",
]  # fmt: skip
NO_END_INSIDE = [
    "One sentence here.", "See e.g. this one", "version 1.5 of it", "No.space", "今天。",
    "「はい。」", "wait... then", "a. b", "End. “", "It was 1990. 2 more",
]  # fmt: skip


@pytest.mark.parametrize("line", ENDS_INSIDE + NO_END_INSIDE)
def test_what_counts_as_the_end_of_a_sentence_inside_a_line(tmp_path, line):
    (tmp_path / "a.txt").write_text(line + "\n", encoding="utf-8")
    expected = "paragraphs" if line in ENDS_INSIDE else "lines"
    assert examine(str(tmp_path / "a.txt"), "auto", "text")[0].name == expected


@pytest.mark.parametrize("several, single, expected", [(2, 2, "lines"), (3, 2, "paragraphs")])
def test_more_than_half_of_the_lines_decide(tmp_path, several, single, expected):
    lines = ["One here. Two there.", ""] * several + ["One here.", " "] * single
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert examine(str(tmp_path / "a.txt"), "auto", "text")[0].name == expected


@pytest.mark.parametrize("count, expected", [(500, "lines"), (501, "paragraphs")])
def test_only_the_first_thousand_lines_are_looked_at(tmp_path, count, expected):
    lines = ["One."] * (1000 - count) + ["One. Two."] * count + ["One."] * 9000
    (tmp_path / "a.txt").write_text("\n\n".join(lines))
    assert examine(str(tmp_path / "a.txt"), "auto", "text")[0].name == expected
    (tmp_path / "a.txt").write_text("\n\n".join(["One."] * 1000 + ["One. Two."] * 9000))
    assert examine(str(tmp_path / "a.txt"), "auto", "text")[0].name == "lines"


class Opened:
    """A stand-in for a reader."""

    def __init__(self, path, is_parquet):
        self.path, self.is_parquet = path, is_parquet


@pytest.mark.parametrize(
    "path, is_parquet, input_format, message",
    [
        ("a.txt", True, "parquet", None),
        ("a.json", True, "parquet", None),
        ("a.txt", False, "lines", None),
        ("a.txt", False, "jsonl", None),
        ("a.json.gz", False, "jsonl", None),
        ("a.txt", True, "jsonl", "^a.txt is a Parquet file, but --input_format=jsonl"),
        ("a.txt", False, "parquet", "^a.txt is not a Parquet file, but --input_format=par"),
        ("a.json", False, "lines", "^a.json is JSON by its name, but --input_format=lines"),
        ("a.jsonl.gz", False, "parquet", "^a.jsonl.gz is JSON by its name"),
    ],
)
def test_a_file_that_is_surely_in_another_format_is_refused(
    path, is_parquet, input_format, message
):
    beginning = Beginning(Opened(path, is_parquet))
    if message is None:
        FORMATS[input_format].check(beginning)
        return
    with pytest.raises(UserError, match=message):
        FORMATS[input_format].check(beginning)


@pytest.mark.parametrize(
    "line, problem",
    [
        ("and the men who had come up from the river with their wet boots on", "wrapped"),
        ("The men who had come up from the river had their wet boots on.", ""),
        ("A short line", ""),
        ("<p class='a'>Some text</p>", "HTML"),
        ("Is 3 < 4 or 5 > 4?", ""),
        ('{"text": "A cat sat. It was grey."}', "JSON objects: --input_format=jsonl"),
    ],
)
def test_text_that_is_not_prose_in_lines_is_noticed(tmp_path, line, problem):
    path = tmp_path / "a.txt"
    path.write_text(f"{line}\n" * 12)
    (block,) = read_blocks(0, [str(path)], 1 << 20)
    assert [problem in said for _, said in block.parts[0].problems] == [True] * bool(problem)
    (block,) = read_blocks(0, [str(path)], 1 << 20, "wrapped")
    assert not block.parts[0].problems


def test_a_json_array_is_noticed(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[\n{"text": "A cat sat."},\n{"text": "It slept."}\n]\n')
    (block,) = read_blocks(0, [str(path)], 1 << 20)
    assert any("it is a JSON array" in said for _, said in block.parts[0].problems)
