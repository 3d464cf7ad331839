"""Cases are chosen by a pattern; tables say which processor they are of."""

from __future__ import annotations

import os

import pytest

from benchmarks import tables
from data_pipeline.errors import UserError

PARTS = {"8x128": 1, "32x128": 2, "4x512": 3}

CPU_INFO = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
flags\t\t: fpu avx2 avx512f avx512_bf16

processor\t: 1
"""


def test_a_table_names_its_processor(tmp_path, monkeypatch, capsys):
    (tmp_path / "cpuinfo").write_text(CPU_INFO)
    monkeypatch.setattr(tables, "CPU_INFO", tmp_path / "cpuinfo")
    tables.print_rows([{"case": "8x128", "ms": 5}])
    processor, header, row, _ = capsys.readouterr().out.splitlines()
    expected = "AMD EPYC, family 25 model 17, avx2, avx512f, avx512_bf16"
    assert processor == f"{expected}, {os.cpu_count()} cores"
    assert (header.split(), row.split()) == (["case", "ms"], ["8x128", "5"])


@pytest.mark.parametrize("pattern, expected", [("", [1, 2, 3]), ("x128", [1, 2]), ("^8x", [1])])
def test_names_that_match_are_chosen_in_their_order(pattern, expected):
    assert list(tables.chosen("cases", pattern, PARTS).values()) == expected


@pytest.mark.parametrize(
    "pattern, message",
    [
        ("16x", "--cases=16x matches none of: 8x128; 32x128; 4x512."),
        ("(8x", r"--cases=\(8x is not a regular expression: .*"),
    ],
)
def test_a_pattern_that_chooses_nothing_is_an_error(pattern, message):
    with pytest.raises(UserError, match=message):
        tables.chosen("cases", pattern, PARTS)
