"""The ranges of a file are the blocks that reading it from its beginning gives."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.corpus import parts, ranges
from data_pipeline.corpus.blocks import read_blocks
from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.ranges import FileGroup, TextRange, divide

LINES = st.lists(
    st.sampled_from(
        ["", " ", "a", "bb cc", "ä ö", "word " * 12, "x" * 70, "ü" * 200, "y" * 39 + " ", "</doc>"]
    ),
    max_size=40,
)


@pytest.fixture(scope="module", autouse=True)
def small_limits():
    """Lines of 40 bytes and documents of 100 are long, and little is read at once."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(parts, "MAX_LINE_BYTES", 40)
    monkeypatch.setattr(parts, "MAX_JSON_BYTES", 40)
    monkeypatch.setattr(parts, "MAX_DOCUMENT_BYTES", 100)
    monkeypatch.setattr(ranges, "_LOOK_BYTES", 8)
    yield
    monkeypatch.undo()


def in_sequence(path, block_bytes, input_format):
    blocks = read_blocks(3, [str(path)], block_bytes, input_format)
    return [(block.name, block.parts) for block in blocks]


def by_ranges(path, block_bytes, input_format):
    """Name and parts of the blocks of all ranges, their lines counted from the file's start."""
    found = list(divide(3, [str(path)], Corpus("", input_format), block_bytes))
    assert all(isinstance(part, TextRange) for part in found)
    blocks = [part.read() for part in reversed(found)][::-1]
    for part, block in zip(found, blocks, strict=True):
        assert part.name == block.name and part.stored_bytes == block.stored_bytes
    assert sum(block.stored_bytes for block in blocks) == path.stat().st_size
    lines, counted = 0, []
    for block in blocks:
        [part] = block.parts
        problems = [(shifted(where, path, lines), problem) for where, problem in part.problems]
        part = dataclasses.replace(part, first_line=1 + lines, problems=problems)
        counted.append((block.name, [part]))
        lines += block.lines
    return counted


def shifted(where, path, lines):
    number = where.removeprefix(str(path))[1:]
    return f"{path}:{int(number) + lines}" if number else where


@settings(max_examples=400, deadline=None)
@given(
    LINES,
    st.integers(3, 300),
    st.sampled_from(["lines", "jsonl", "wikiextractor"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_ranges_are_the_blocks_of_reading_in_sequence(
    tmp_path_factory, lines, size, kind, end, final, mark
):
    path = tmp_path_factory.mktemp("ranges") / "a.txt"
    path.write_bytes(mark + (end.join(lines) + (end if final else "")).encode("utf-8"))
    if path.stat().st_size <= size:
        assert list(divide(3, [str(path)], Corpus("", kind), size)) == [FileGroup(3, [str(path)])]
    else:
        assert by_ranges(path, size, kind) == in_sequence(path, size, kind)
