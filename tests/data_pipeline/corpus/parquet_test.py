"""Parquet files give the documents that the same texts give as jsonl, in little memory."""

import gzip
import io
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_pipeline.corpus import documents
from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.corpus.formats import examine
from data_pipeline.corpus.parquet import JsonLines
from data_pipeline.corpus.report import ReadReport
from data_pipeline.errors import UserError
from data_pipeline.files import storage

TEXTS = [f"Page {i} is here. It says {i % 7}, or “{'é' * (i % 5)}”.\n\nMore." for i in range(500)]


def write(path, rows_in_group=64, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=rows_in_group)
    return str(path)


def read(path, report=None, **options):
    return list(read_documents(Corpus(str(path), **options), report))


@pytest.fixture
def texts(tmp_path):
    """The same texts in both formats; numbers beside them."""
    lines = (json.dumps({"text": text}) for text in TEXTS)
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    write(tmp_path / "a.parquet", text=TEXTS, number=list(range(500)))
    return tmp_path


@pytest.mark.parametrize("input_format", ["auto", "parquet"])
def test_rows_are_documents(texts, input_format):
    found = read(texts / "a.parquet", input_format=input_format)
    assert found == read(texts / "a.jsonl") and len(found) == 500


def test_the_content_decides_and_not_the_name(texts):
    (texts / "a.parquet").rename(texts / "0f3c9a")
    assert read(texts / "0f3c9a") == read(texts / "a.jsonl")
    for name, content in [("b.parquet", b"Plain text.\n"), ("c.parquet", b"")]:
        (texts / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name} is not a Parquet file"):
            read(texts / name)


def test_other_columns_types_and_missing_texts(tmp_path):
    report = ReadReport()
    content = pa.array(["One here.", None, "Two here."]).dictionary_encode()
    path = write(tmp_path / "a.parquet", content=content, text=[1, 2, 3])
    assert read(path, report, text_field="content") == [["One here."], ["Two here."]]
    assert report.examples == [f"{path}:2: no text in field 'content', skipped"]
    with pytest.raises(UserError, match=r"'text' \(--text_field\) holds int64, not.*: content\."):
        read(path)
    with pytest.raises(UserError, match=r"'body' \(--text_field\) does not exist.*: content\."):
        read(path, text_field="body")


def test_blocks_are_cut_as_those_of_jsonl(texts):
    corpus = Corpus(str(texts / "a.parquet"))
    blocks = list(documents.read_corpus(corpus.files(), corpus, block_bytes=4000))
    assert len(blocks) > 5 and blocks[-1].stored_bytes >= 0
    assert sum(block.stored_bytes for block in blocks) == (texts / "a.parquet").stat().st_size
    found = [d for b in blocks for d in documents.documents_of_block(b, corpus, ReadReport())]
    assert found == read(texts / "a.jsonl")


def test_rows_are_read_as_they_are_needed(texts):
    """The first line is there when few of the row groups have been read."""
    with open(texts / "a.parquet", "rb") as file:
        lines = JsonLines(file, "a.parquet", "text")
        assert json.loads(lines.readline())["text"] == TEXTS[0]
        assert 0 < lines.share_read <= 64 / 500
        assert len(list(lines)) == 499 and lines.share_read == 1


def test_a_large_row_group_is_read_in_pieces(tmp_path):
    rng = np.random.default_rng(0)
    texts = [rng.bytes(2000).hex() for _ in range(2000)]  # 8 MB
    pq.write_table(
        pa.table({"text": texts}),
        tmp_path / "a.parquet",
        use_dictionary=False,
        data_page_size=1 << 16,
        write_batch_size=16,
    )
    sizes = []

    class Watched(io.FileIO):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    with Watched(tmp_path / "a.parquet") as file:
        lines = io.BufferedReader(JsonLines(file, "a.parquet", "text"))
        assert [json.loads(line)["text"] for line in lines] == texts
    assert len(sizes) > 4 and max(sizes) <= 2 << 20


def test_damage_is_named(texts):
    content = (texts / "a.parquet").read_bytes()
    (texts / "cut.parquet").write_bytes(content[: len(content) // 2])
    (texts / "garbled.parquet").write_bytes(content[:100] + b"\xff" * 3000 + content[3100:])
    for name in ("cut", "garbled"):
        with pytest.raises(UserError, match=f"{name}.parquet is not a complete Parquet file: .+"):
            read(texts / f"{name}.parquet")
    (texts / "a.parquet.gz").write_bytes(gzip.compress(content))
    with pytest.raises(UserError, match="compressed Parquet file; decompress it"):
        read(texts / "a.parquet.gz")


def test_without_pyarrow_one_sentence_says_what_to_install(texts, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r'needs a package .*pip install "albert-tf\[parquet\]"'):
        read(texts / "a.parquet")
    assert len(read(texts / "a.jsonl")) == 500


def test_remote_files(texts):
    folder = f"ram://{texts.name}/parquet"
    storage.make_folder(folder)
    with storage.open_file(f"{folder}/a.parquet", "wb") as file:
        file.write((texts / "a.parquet").read_bytes())
    assert read(f"{folder}/*.parquet") == read(texts / "a.jsonl")
    assert examine(f"{folder}/a.parquet", "auto", "text")[0].name == "parquet"


@pytest.mark.parametrize("dictionary", [False, True])
def test_bytes_that_are_not_utf_8_are_repaired_and_counted(tmp_path, dictionary):
    latin_1 = "Déjà vu. “Sic.”".encode("cp1252", "replace")
    raw = pa.array([b"One here.", latin_1, None], pa.binary())
    column = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2], raw.buffers()[0])
    path = write(tmp_path / "a.parquet", text=column.dictionary_encode() if dictionary else column)
    report = ReadReport()
    assert read(path, report)[1] == ["D\ufffdj\ufffd vu.", "\ufffdSic."]
    assert report.examples == [
        f"{path}:2: invalid UTF-8, replaced by U+FFFD",
        f"{path}:3: no text in field 'text', skipped",
    ]
