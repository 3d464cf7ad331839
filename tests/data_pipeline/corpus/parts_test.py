"""Where documents end and how long lines are divided, spelled out byte by byte."""

import io
import itertools

import pytest

from data_pipeline.corpus import parts
from data_pipeline.corpus.formats import FORMATS, Format, JsonLines
from data_pipeline.corpus.parts import PartBuilder
from data_pipeline.corpus.text_part import TextPart


class Lines:
    """Lines in memory in place of those of a file."""

    def __init__(self, content):
        self._file = io.BytesIO(content)

    def read_line(self, limit):
        return self._file.readline(limit)

    def read_lines(self, size, limit):
        start, content = self._file.tell(), b""
        while line := self._file.readline(limit):
            if len(content + line) > size or len(line) >= limit or not line.endswith(b"\n"):
                break
            content += line
        self._file.seek(start + len(content))
        return content


@pytest.fixture
def small(monkeypatch):
    """Lines of 10 bytes and documents of 20 are too long."""
    monkeypatch.setattr(Format, "line_limit", 10)
    monkeypatch.setattr(JsonLines, "line_limit", 10)
    monkeypatch.setattr(parts, "MAX_DOCUMENT_BYTES", 20)


def lines_added(content, input_format="lines"):
    """A builder that got the content line by line, its part, and what was added of each line."""
    builder, reader, sizes = PartBuilder("a.txt", FORMATS[input_format]), Lines(content), [0]
    while builder.add_from(reader, 0):
        sizes.append(builder.bytes)
    part = builder.take(final=True)
    return builder, part, [part.content[i:j] for i, j in itertools.pairwise(sizes)]


def test_parts_hold_lines_and_the_number_of_the_first():
    builder, reader = PartBuilder("a.txt", FORMATS["lines"]), Lines(b"one\ntwo\n\nthree\nfour")
    assert builder.add_from(reader, 9) and builder.bytes == 9 and builder.next_line == 4
    assert builder.take(final=False) == TextPart("a.txt", "lines", 1, b"one\ntwo\n\n", [])
    assert builder.bytes == 0
    assert builder.add_from(reader, 100) and builder.add_from(reader, 100)
    assert not builder.add_from(reader, 100)
    assert (builder.bytes, builder.next_line) == (10, 6)
    assert builder.take(final=True) == TextPart("a.txt", "lines", 4, b"three\nfour", [])


@pytest.mark.parametrize(
    "input_format, content, ends",
    [
        ("lines", b"a\n", False), ("lines", b"a\n\n", True), ("lines", b"a\n \t\r\n", True),
        ("paragraphs", b"a\n\n", True), ("lines", b"\na\n", False), ("lines", b"</doc>\n", False),
        ("jsonl", b"{}\n", True), ("jsonl", b"\n", True),
        ("wikiextractor", b"a\n\n", False), ("wikiextractor", b"a\n</doc>\n", True),
        ("wikiextractor", b" </doc> \n", True), ("wikiextractor", b"</doc>\na\n", False),
    ],
)  # fmt: skip
def test_where_documents_end(input_format, content, ends):
    for size in (0, 100):  # Line by line, and all at once.
        builder, reader = PartBuilder("a.txt", FORMATS[input_format]), Lines(content)
        while builder.add_from(reader, size):
            pass
        assert builder.ends_document is ends


def test_a_part_is_full_with_the_document_that_fills_it(small):
    builder = PartBuilder("a.txt", FORMATS["lines"])
    for content, full in [(b"aaaa\n", False), (b"\n", True), (b"b\n", False)]:
        builder.add_from(Lines(content), 0)
        assert builder.is_full(6) is full
    assert not builder.is_full(9) and builder.bytes == 8


def test_a_document_without_end_fills_a_part_too(small):
    builder = PartBuilder("a.txt", FORMATS["lines"])
    builder.add_from(Lines(b"a\n" * 14), 100)
    assert builder.bytes == 28 and not builder.is_full(9) and builder.is_full(8)
    part = builder.take(final=False)
    assert part.problems == [("a.txt:15", "document longer than 0 MB, divided")]
    builder.add_from(Lines(b"b\n\n"), 100)
    assert builder.take(final=False).problems == []


def test_limits_of_lines_and_documents_in_megabytes():
    builder, reader = PartBuilder("a.txt", FORMATS["lines"]), Lines(b"x" * (1 << 20) + b"\n")
    assert builder.add_from(reader, 1 << 21) and builder.in_long_line
    builder.add_from(reader, 1 << 21)
    assert builder.take(final=False).problems == [
        ("a.txt:1", "line longer than 1 MB, divided"),
        ("a.txt:2", "document longer than 16 MB, divided"),
    ]
    limits = {name: each.line_limit >> 20 for name, each in FORMATS.items()}
    assert limits == dict(parquet=32, jsonl=32, wikiextractor=1, wrapped=1, paragraphs=1, lines=1)
    builder.add_from(Lines((b"a" * ((1 << 19) - 1) + b"\n") * 32), 16 << 20)
    assert builder.is_full(0) and not builder.is_full(1)


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"word word word\n", [b"word word ", b"word\n"]),
        (b"abcd efghijk\n", [b"abcd ", b"efghijk\n"]),
        (b"abcdefghij\n", [b"abcdefghi", b"j\n"]),
        (b"\x80" * 25, [b"\x80" * 10, b"\x80" * 10, b"\x80" * 5]),
        (b"abcdefghi\nabc\nabc", [b"abcdefghi\n", b"abc\n", b"abc"]),
    ],
)
def test_long_lines_are_divided_at_spaces(small, content, expected):
    """Ten bytes are read at a time; what comes behind the last space waits for the next part. Bytes
    that are no characters are cut anywhere.
    """
    _, part, found = lines_added(content)
    assert found == expected and part.content == content
    divided = [] if content.count(b"\n") > 1 else [("a.txt:1", "line longer than 0 MB, divided")]
    assert part.problems == divided


@pytest.mark.parametrize(
    "character, limit, first",
    [
        ("a", 5, 4), ("é", 5, 4), ("é", 4, 2), ("日", 5, 3), ("日", 4, 3), ("日", 3, 0),
        ("😀", 5, 4), ("😀", 6, 4), ("😀", 7, 4), ("😀", 8, 4), ("😀", 9, 8),
    ],
)  # fmt: skip
def test_characters_of_endless_words_are_not_cut(small, monkeypatch, character, limit, first):
    """The last character, which may go on in what is read next, is held back."""
    monkeypatch.setattr(Format, "line_limit", limit)
    content = character.encode() * 20
    _, part, found = lines_added(content)
    assert len(found[0]) == first
    assert "".join(piece.decode() for piece in found) in character * 20
    assert part.content == content


def test_long_json_is_skipped_and_its_line_counted(small):
    builder, part, found = lines_added(b"{}\n" + b"x" * 25 + b"\n{}\n", "jsonl")
    assert found == [b"{}\n", b"", b"", b"\n", b"{}\n"]
    assert part.problems == [("a.txt:2", "line longer than 0 MB, skipped")]
    assert builder.next_line == 4


def test_a_long_line_ends_no_document(small):
    builder, reader = PartBuilder("a.txt", FORMATS["lines"]), Lines(b" " * 15 + b"\n")
    builder.add_from(reader, 100)
    assert builder.in_long_line and not builder.ends_document
    builder.add_from(reader, 100)
    assert not builder.in_long_line and builder.ends_document


@pytest.mark.parametrize("content, problems", [(b" \n\n", True), (b"", True), (b"\na\n", False)])
def test_files_without_text_are_named(content, problems):
    for size in (0, 100):
        builder, reader = PartBuilder("a.txt", FORMATS["lines"]), Lines(content)
        while builder.add_from(reader, size):
            pass
        expected = [("a.txt", "file without text")] if problems else []
        assert builder.take(final=True).problems == expected
