"""The format of a file is found in its name and content."""

import gzip

import pytest

from data_pipeline.corpus.formats import check_format, detect_format
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
    assert detect_format(str(path)) == expected


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
    assert detect_format(str(tmp_path / "a.txt")) == expected


@pytest.mark.parametrize("several, single, expected", [(2, 2, "lines"), (3, 2, "paragraphs")])
def test_more_than_half_of_the_lines_decide(tmp_path, several, single, expected):
    lines = ["One here. Two there.", ""] * several + ["One here.", " "] * single
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert detect_format(str(tmp_path / "a.txt")) == expected


@pytest.mark.parametrize("count, expected", [(500, "lines"), (501, "paragraphs")])
def test_only_the_first_thousand_lines_are_looked_at(tmp_path, count, expected):
    lines = ["One."] * (1000 - count) + ["One. Two."] * count + ["One."] * 9000
    (tmp_path / "a.txt").write_text("\n\n".join(lines))
    assert detect_format(str(tmp_path / "a.txt")) == expected
    (tmp_path / "a.txt").write_text("\n\n".join(["One."] * 1000 + ["One. Two."] * 9000))
    assert detect_format(str(tmp_path / "a.txt")) == "lines"


class Opened:
    """A stand-in for a reader."""

    path = "a.txt"

    def __init__(self, is_parquet):
        self.is_parquet = is_parquet


def test_parquet_is_read_as_parquet_and_nothing_else_is():
    check_format(Opened(True), "parquet")
    check_format(Opened(False), "lines")
    with pytest.raises(UserError, match=r"^a.txt is a Parquet file, but --input_format=jsonl"):
        check_format(Opened(True), "jsonl")
    with pytest.raises(UserError, match=r"^a.txt is no Parquet file, but --input_format=par"):
        check_format(Opened(False), "parquet")
