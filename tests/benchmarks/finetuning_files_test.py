"""Parts of benchmark files are read again as what they were."""

from __future__ import annotations

import json

import pytest

from benchmarks.finetuning_files import Lines, Race, Sentences, Squad

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


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    (tmp_path / "file").write_text("\ufeffa\n1\n", encoding="utf-8")
    assert Lines("a").read(tmp_path / "file") == ["1"]
    assert Lines().read(tmp_path / "file") == ["a", "1"]


def test_the_last_record_is_cut():
    assert [len(found["qas"]) for found in Squad().first(PARAGRAPHS, 3)] == [2, 1]
    assert Squad().first(PARAGRAPHS, 2) == PARAGRAPHS[:1]
    assert Lines().first(["a", "b"], 5) == ["a", "b"]


def test_race_has_both_levels_in_turn(tmp_path):
    for level, count in (("middle", 1), ("high", 3)):
        (tmp_path / "all" / level).mkdir(parents=True)
        for number in range(count):
            passage = {name: [f"{level}{number}", "other"] for name in Race._LISTS}
            (tmp_path / "all" / level / f"{number}.txt").write_text(json.dumps(passage))
    layout = Race()
    chosen = layout.first(layout.read(tmp_path / "all"), 5)
    assert [layout.size(found) for found in chosen] == [2, 2, 1]
    layout.write(chosen, tmp_path / "some")
    found = layout.read(tmp_path / "some")
    assert [passage["questions"][0] for passage in found] == ["middle0", "high0", "high1"]
