"""The paper's tables: every row, its rounded millions, and exact counts beside them."""

from __future__ import annotations

import re

import pytest

from albert_tf.analysis.paper_tables import NAMES, TABLES, average, paper_table

ROW = re.compile(r"(.{27}) +(\d+)M +(\S+) +(\S+)" + r" +([\d,.]+)" * 5 + r" +([\d.]+)x(.*)")


def rows(name: str) -> dict[str, list[str]]:
    """Name -> the cells after it, as text."""
    matches = filter(None, map(ROW.fullmatch, paper_table(name).splitlines()))
    return {
        match[1].strip(): [cell.replace(",", "") for cell in match.groups()[1:]]
        for match in matches
    }


@pytest.mark.parametrize("name", TABLES)
def test_counts_round_to_the_papers(name):
    """To a million or so where they are explained; the others are named."""
    unexplained = set()
    for row, (millions, _, pooler, encoder, without, *_) in rows(name).items():
        if pooler == "?":
            unexplained.add((row, millions))
            assert min(abs(int(each) / 1e6 - int(millions)) for each in (encoder, without)) < 13
        else:
            noise = 0.5 if int(millions) < 1000 else 5
            for count, answer in ((encoder, "yes"), (without, "no")):
                is_near = abs(int(count) / 1e6 - int(millions)) <= noise
                assert is_near == (pooler in (answer, "either")), row
    big = {("ALBERT xlarge", "60"), ("ALBERT xxlarge", "235")}
    wide = {(f"3 layers, H = {h}", m) for h, m in ((2048, "60"), (4096, "225"), (6144, "499"))}
    assert unexplained == {"models": big, "results": big, "width": wide}.get(name, set())
    assert paper_table(str(TABLES[name].number)) == paper_table(name)


def test_every_row_is_there():
    assert {name: len(rows(name)) for name in TABLES} == {
        "models": 7, "results": 6, "embedding": 8, "sharing": 8, "depth": 6, "width": 4
    }  # fmt: skip
    assert set(NAMES) == {"1", "2", "3", "4", "11", "12", *TABLES}


def test_the_pooler_is_counted_where_layers_are_shared():
    for name in ("models", "embedding", "sharing"):
        for row in TABLES[name].rows:
            if (shown := rows(name)[row.name][2]) in ("yes", "no"):
                assert (shown == "no") is (row.config.parameter_sharing == "none"), row.name


def test_versions_and_columns():
    found = rows("models")
    assert {name for name, cells in found.items() if cells[1] == "v1"} == {"BERT xlarge"}
    # Encoder, without its pooler, with heads, V E + E H and V H in millions, times smaller.
    assert found["ALBERT base"][3:9] == [
        "11683584", "11092992", "11813810", "3.94", "23.04", "9.3"
    ]  # fmt: skip
    assert found["ALBERT large"][8] == "18.9"
    assert rows("embedding")["all shared, E = 128"] == found["ALBERT base"]
    assert {cells[3] for cells in rows("depth").values()} == {"17683968"}
    assert "BERT xlarge is in v1 only." in paper_table("models")


def test_averages_are_those_of_five_tasks():
    """SQuAD counts as (F1 + EM) / 2: with F1 alone ALBERT base would have 81.0, not 80.1."""
    for row in TABLES["results"].rows:
        assert row.scores and abs(average(row.scores) - row.scores[5]) <= 0.0501, row.name
    assert paper_table("2").count(" 80.1    80.05\n") == 1
