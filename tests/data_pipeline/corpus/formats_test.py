"""The format of a file is found in its name and content."""

import gzip

import pytest

from data_pipeline.corpus.formats import detect_format


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
