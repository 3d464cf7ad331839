"""Blocks hold whole documents, cut alike however they are read, and lose nothing."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.corpus import parts
from data_pipeline.corpus.blocks import TextBlock, automatic_block_bytes, group_files, read_blocks
from data_pipeline.corpus.documents import Corpus, documents_of_block
from data_pipeline.corpus.formats import FORMATS
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.streams import Reader
from data_pipeline.corpus.text_part import TextPart


def blocks_of(path, block_bytes, input_format="lines"):
    return list(read_blocks(0, [str(path)], block_bytes, input_format))


def content(blocks):
    return b"".join(part.content for block in blocks for part in block.parts)


def documents(blocks, report=None):
    report = report or ReadReport()
    return [
        document for block in blocks for document in documents_of_block(block, Corpus(""), report)
    ]


LINES = st.lists(st.sampled_from(["", " ", "a", "bb cc", "ä ö", "long " * 9]), max_size=30)


@settings(max_examples=100, deadline=None)
@given(LINES, st.integers(1, 100), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_size_of_block_gives_the_same_documents(tmp_path_factory, lines, size, end, final):
    path = tmp_path_factory.mktemp("blocks") / "a.txt"
    path.write_bytes((end.join(lines) + (end if final else "")).encode("utf-8"))
    blocks = blocks_of(path, size)
    assert content(blocks) == path.read_bytes()
    assert documents(blocks) == documents(blocks_of(path, 1 << 20))
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert sum(block.stored_bytes for block in blocks) == len(path.read_bytes())
    for block in blocks[:-1]:
        assert block.text_bytes >= size
        assert block.parts[-1].content.splitlines()[-1].strip() == b"", "ends with a document"
    number = 1
    for block in blocks:
        assert block.parts[0].first_line == number or not block.text_bytes
        number += block.parts[0].content.count(b"\n")


def test_compressed_files_give_the_same_blocks(tmp_path, corpus_file):
    (tmp_path / "a.txt").write_bytes(Path(corpus_file).read_bytes())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress((tmp_path / "a.txt").read_bytes()))
    plain, packed = (blocks_of(tmp_path / name, 50_000) for name in ("a.txt", "b.txt.gz"))
    assert len(plain) > 3
    for one, other in zip(plain, packed):
        assert [part.content for part in one.parts] == [part.content for part in other.parts]


def test_lines_before_one_beyond_the_limit_are_read_at_once(tmp_path, monkeypatch):
    """Looking through the whole block for each of them took five minutes for 3 MB."""
    (tmp_path / "a.txt").write_text("A short line.\n" * 20_000 + "word " * 300_000 + "\n\n")
    calls, read_lines = [], Reader.read_lines

    def counting(reader, size, limit):
        calls.append(size)
        return read_lines(reader, size, limit)

    monkeypatch.setattr(Reader, "read_lines", counting)
    [block] = blocks_of(tmp_path / "a.txt", 8 << 20)
    assert block.text_bytes == (tmp_path / "a.txt").stat().st_size
    assert len(calls) < 20


# Three documents of two lines or paragraphs each.
SAMPLES = {
    "lines": "a\nb\n\nc\nd\n \ne\nf\n",
    "wikiextractor": "".join(f"<doc id=1>\n{x}\n\n{y}\n</doc>\n" for x, y in ("ab", "cd", "ef")),
    "jsonl": "".join(f'{{"text": "{x}\\n{y}"}}\n' for x, y in ("ab", "cd", "ef")),
}
SAMPLES |= {"paragraphs": SAMPLES["lines"], "parquet": SAMPLES["jsonl"]}


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "wrapped"])
def test_blocks_of_each_format_end_with_documents(tmp_path, name):
    """What a format says about one line agrees with the documents that it finds in many."""
    path = tmp_path / "a"
    if name == "parquet":
        rows = [json.loads(line) for line in SAMPLES[name].splitlines()]
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text(SAMPLES[name])
    for size in (1, 1 << 20):
        blocks = blocks_of(path, size, name)
        assert len(blocks) == (3 if size == 1 else 1)
        assert documents(blocks) == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_a_line_of_40_mb_takes_little_memory(tmp_path):
    """A word without end, then a document: the block before it is not lost either."""
    with open(tmp_path / "a.txt", "wb") as file:
        file.write(b"First.\n\n")
        for _ in range(40):
            file.write(b"x" * (1 << 20))
        file.write(b"\n\nLast.\n")
    sizes = []
    for block in read_blocks(0, [str(tmp_path / "a.txt")], 1 << 20, "lines"):
        sizes.append(block.text_bytes)
        last = block
    assert max(sizes) <= (1 << 20) + parts.MAX_DOCUMENT_BYTES + (1 << 20)
    assert sum(sizes) == (40 << 20) + 16 and documents([last])[-1] == ["Last."]


def test_names_sort_as_the_corpus():
    part = TextPart("a.txt", "lines", 1, b"abc")
    block = TextBlock(2, 13, [part, part], stored_bytes=9)
    assert (block.name, block.text_bytes) == ("00002-00013", 6)


@pytest.mark.parametrize(
    "sizes, groups",
    [
        ([3, 3, 4, 1], [[0, 1, 2], [3]]),
        ([3, 3, 5, 5, 1], [[0, 1], [2, 3], [4]]),
        ([11, 1, 10, 1], [[0], [1], [2], [3]]),
        ([0, 0, 10, 0], [[0, 1, 2, 3]]),
        ([], []),
    ],
)
def test_files_are_grouped_as_they_fill_a_block(sizes, groups):
    """Blocks of 10 bytes; a file that does not fit into what is left begins a group."""
    paths = [f"{i}.txt" for i in range(len(sizes))]
    found = group_files(paths, sizes, 10)
    assert found == [[paths[i] for i in group] for group in groups]
    assert group_files(["a.txt.gz", "b.txt"], [3, 1], 10) == [["a.txt.gz", "b.txt"]]
    assert group_files(["a.txt.gz", "b.txt"], [3, 2], 10) == [["a.txt.gz"], ["b.txt"]]


def test_blocks_are_no_smaller_and_no_larger():
    assert automatic_block_bytes(32 << 20) == 1 << 20
    assert automatic_block_bytes((32 << 20) + 64) == (1 << 20) + 2
    assert automatic_block_bytes(1 << 30) == 32 << 20
    assert automatic_block_bytes((1 << 30) - 64) == (32 << 20) - 2


def test_a_group_of_files_is_numbered_and_counted(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    (tmp_path / "b.txt").write_text("three\n\n")
    (tmp_path / "c.txt").write_text("")
    paths = [str(tmp_path / name) for name in ("a.txt", "b.txt", "c.txt")]
    blocks = list(read_blocks(4, paths, 5, "lines"))
    assert [(block.group, block.index) for block in blocks] == [(4, 0), (4, 1), (4, 2)]
    assert [[part.content for part in block.parts] for block in blocks] == [
        [b"one\n\n"], [b"two\n", b"three\n\n"], [b"", b""],
    ]  # fmt: skip
    assert blocks[2].parts[1].problems == [(paths[2], "file without text")]
    assert sum(block.stored_bytes for block in blocks) == 9 + 7
    [alone] = read_blocks(4, paths[1:2], 100, "lines")
    assert alone.stored_bytes == 7
