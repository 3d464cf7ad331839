"""Parts of benchmark files are read again as what they were."""

from __future__ import annotations

import pytest

from benchmarks.finetuning_files import Lines, Sentences, Squad

PARAGRAPHS = [
    {"context": "one", "qas": [{"id": "1"}, {"id": "2"}]},
    {"context": "two", "qas": [{"id": "3"}, {"id": "4"}, {"id": "5"}]},
]


@pytest.mark.parametrize(
    "layout, records",
    [
        (Lines("a\tb"), ['x "\ty', "z\t"]),
        (Lines(), ["{}", "[]"]),
        (Sentences(), [["The\tO", "end\tB-x"], [".\tO"]]),
        (Squad(), PARAGRAPHS),
    ],
)
def test_what_is_written_is_read_again(layout, records, tmp_path):
    layout.write(records, tmp_path / "file")
    assert layout.read(tmp_path / "file") == records


def test_the_last_record_is_cut():
    assert [len(found["qas"]) for found in Squad().first(PARAGRAPHS, 3)] == [2, 1]
    assert Squad().first(PARAGRAPHS, 2) == PARAGRAPHS[:1]
    assert Lines().first(["a", "b"], 5) == ["a", "b"]
