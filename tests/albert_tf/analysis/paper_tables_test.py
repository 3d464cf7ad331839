"""The paper's tables: every row, its rounded millions, and exact counts beside them."""

from __future__ import annotations

import re

import pytest

from albert_tf.analysis.paper_tables import TABLES, paper_table

ROW = re.compile(r"(.{27}) +(\d+)M +([\d,]+) +([\d,]+)")


def rows(number: int) -> dict[str, tuple[int, int, int]]:
    """Name -> the paper's millions, parameters of the encoder, and those with heads."""
    matches = filter(None, map(ROW.fullmatch, paper_table(number).splitlines()))
    return {
        match[1].strip(): tuple(int(match[i].replace(",", "")) for i in (2, 3, 4))
        for match in matches
    }


@pytest.mark.parametrize("number", TABLES)
def test_counts_round_to_the_papers(number):
    """To a million or so: the paper counts some heads, and rounds some up."""
    for name, (millions, encoder, with_heads) in rows(number).items():
        if name != "ALBERT xxlarge":
            near = (encoder / 1e6, with_heads / 1e6)
            assert min(abs(millions - each) for each in near) <= max(1.1, 0.01 * millions), name


def test_models():
    found = rows(1)
    assert list(found) == [
        "BERT base",
        "BERT large",
        "BERT xlarge",
        "ALBERT base",
        "ALBERT large",
        "ALBERT xlarge",
        "ALBERT xxlarge",
    ]
    assert found["ALBERT base"] == (12, 11_683_584, 11_813_810)
    assert found["ALBERT xxlarge"][:2] == (235, 222_595_584)
    assert list(rows(2)) == [name for name in found if name != "BERT xlarge"]


def test_embedding_sizes():
    found = rows(3)
    assert {name: figures[0] for name, figures in found.items()} == {
        "none shared, E = 64": 87,
        "none shared, E = 128": 89,
        "none shared, E = 256": 93,
        "none shared, E = 768": 108,
        "all shared, E = 64": 10,
        "all shared, E = 128": 12,
        "all shared, E = 256": 16,
        "all shared, E = 768": 31,
    }
    assert found["all shared, E = 128"] == rows(1)["ALBERT base"]


def test_what_is_shared():
    assert {name: figures[0] for name, figures in rows(4).items()} == {
        "E = 768, all shared": 31,
        "E = 768, attention shared": 83,
        "E = 768, ffn shared": 57,
        "E = 768, none shared": 108,
        "E = 128, all shared": 12,
        "E = 128, attention shared": 64,
        "E = 128, ffn shared": 38,
        "E = 128, none shared": 89,
    }


def test_the_exception_is_explained_where_it_stands():
    for number in TABLES:
        assert paper_table(number).startswith(f"Table {number} ")
        last = paper_table(number).splitlines()[-1]
        assert last.startswith("ALBERT xxlarge: the paper's 235M") is (number in (1, 2))
