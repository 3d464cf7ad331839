"""Every format gives the same documents; what is not text is repaired, reported or refused."""

import bz2
import dataclasses
import gzip
import json
import lzma
from pathlib import Path

import pytest
import zstandard

from data_pipeline.corpus.blocks import TextBlock, match_files
from data_pipeline.corpus.documents import (
    Corpus,
    documents_of_block,
    number_of_documents,
    read_documents,
)
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.text_part import TextPart
from data_pipeline.errors import UserError

SENTENCES = ["Dr. Smith left.", "He said it was over!", "Was it?"]


def read(path, input_format="auto", report=None, **options):
    return list(read_documents(Corpus(str(path), input_format, **options), report))


def test_paragraphs_are_found_and_split(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(" ".join(SENTENCES) + "\n\n" + "A first one. A second one.\n")
    assert read(path) == [SENTENCES, ["A first one.", "A second one."]]
    assert read(path, "lines") == [[" ".join(SENTENCES)], ["A first one. A second one."]]


def test_json_lines(tmp_path):
    wrapped = "\n".join(
        [
            "This line was wrapped at a width of some",
            "forty characters. It ends on the line that",
            "is next.",
        ]
    )
    records = [
        {"text": "One here. Two there.\n\nThree.", "title": "t"},
        {"text": wrapped},
        {"text": "short verse\nis kept apart"},
    ]
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, records)))
    assert read(path) == [
        ["One here.", "Two there.", "Three."],
        [
            "This line was wrapped at a width of some forty characters.",
            "It ends on the line that is next.",
        ],
        ["short verse", "is kept apart"],
    ]
    assert read(path, text_field="title") == [["t"]]


def compressed(content, extension):
    if extension == ".zst":
        return zstandard.ZstdCompressor().compress(content)
    module = {".gz": gzip, ".bz2": bz2, ".xz": lzma}[extension]
    return module.compress(content)


@pytest.mark.parametrize("extension", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_equals_plain_and_damage_is_named(tmp_path, small_file, extension):
    content = Path(small_file).read_bytes()
    packed = compressed(content, extension)
    (tmp_path / f"a.txt{extension}").write_bytes(packed)
    assert read(tmp_path / f"a.txt{extension}") == read(small_file)
    (tmp_path / f"b.txt{extension}").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UserError, match=rf"b.txt\{extension} is not a complete"):
        read(tmp_path / f"b.txt{extension}")
    (tmp_path / f"c.txt{extension}").write_bytes(b"plain text, no more")
    with pytest.raises(UserError, match=rf"c.txt\{extension} is not a complete"):
        read(tmp_path / f"c.txt{extension}")
    members = compressed(b"One.\n", extension) + compressed(b"Two.\n", extension)
    (tmp_path / f"d.txt{extension}").write_bytes(members)
    assert read(tmp_path / f"d.txt{extension}", "lines") == [["One.", "Two."]]


def test_impossible_input_is_refused_by_name(tmp_path):
    (tmp_path / "utf16.txt").write_bytes("Hello\n".encode("utf-16"))
    (tmp_path / "folder").mkdir()
    for name, message in [
        ("utf16.txt", "utf16.txt is UTF-16"),
        ("folder", "folder is a folder.*txt"),
        ("none*", "No file matches"),
    ]:
        with pytest.raises(UserError, match=message):
            read(tmp_path / name)
    with pytest.raises(UserError, match="No input file"):
        match_files(" , ")


def test_patterns_are_lists_in_sorted_order_without_repetition(tmp_path):
    for name in "bca":
        (tmp_path / f"{name}.txt").write_text("x\n")
    found = match_files(f"{tmp_path}/c.txt, {tmp_path}/*.txt")
    assert [path[-5] for path in found] == ["c", "a", "b"]


def test_documents_of_a_block_without_the_dropped_ones():
    part = TextPart("a.txt", "paragraphs", 1, b"One here. Two.\n\n---\n\nThree.\n\nFour.\n")
    block, report = TextBlock(0, 0, [part], 0), ReadReport()
    assert number_of_documents(block, Corpus("")) == 4
    found = list(documents_of_block(block, Corpus(""), report, dropped=[0, 3]))
    assert found == [["Three."]]
    assert report.problems == {
        "duplicate document, dropped": 2,
        "sentence with fewer letters and digits than signs, skipped": 1,
    }
    as_lines = dataclasses.replace(part, input_format="lines")
    block = dataclasses.replace(block, parts=[as_lines])
    assert list(documents_of_block(block, Corpus(""), report, [0]))[:2] == [["---"], ["Three."]]


def test_reading_goes_with_a_bar(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("One.\n")
    assert list(read_documents(Corpus(f"{tmp_path}/a.txt"), show_progress=True)) == [["One."]]
    shown = capsys.readouterr().err
    assert "corpus: 100%" in shown and "5.00/5.00" in shown
    assert read(tmp_path / "a.txt") == [["One."]] and not capsys.readouterr().err


def test_a_corpus_is_read_as_english_unless_it_is_said():
    assert Corpus("a") == Corpus("a", "auto", "text", "en", False)
    message = "^--input_format=html: value should be one of <auto.lines.paragraphs.wrapped"
    with pytest.raises(UserError, match=message):
        Corpus("a", "html")
