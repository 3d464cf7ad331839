"""The chart of the benchmarks shows the figures of the CSV files."""

from __future__ import annotations

from pathlib import Path

from benchmarks.chart import LIBRARIES, library_bars, panels_of

DATA = Path(__file__).parents[2] / "docs" / "benchmarks"


def test_the_committed_chart_is_of_the_committed_figures():
    """A new encoder.csv or pretraining_data.csv needs `python -m benchmarks.chart`."""
    shown = (DATA / "chart.svg").read_text(encoding="utf-8")
    for panel in panels_of(DATA):
        assert f">{panel.title}<" in shown and f">{panel.unit}<" in shown
        for name, figures in panel.bars.items():
            assert f">{name}<" in shown
            assert all(f">{value:,.{panel.digits}f}<" in shown for value in figures if value)


def row(library: str, precision: str, ms: str, case: str = "8x128") -> dict[str, str]:
    """A row of encoder.csv."""
    return {"pass": "forward", "case": case, "library": library, "precision": precision, "ms": ms}


def test_bars_are_the_figures_of_one_case_in_both_precisions():
    rows = [
        row("ours, packed", "bfloat16", "5.0"),
        row("ours, packed", "float32", "7.5"),
        row("KerasHub", "float32", "9.0"),
        row("KerasHub", "bfloat16", "1.0", case="4x512"),
    ]
    bars = library_bars(rows, "forward", "8x128", "ms")
    assert list(bars) == list(LIBRARIES.values())
    assert bars["this project"] == (7.5, 5.0)
    assert bars["KerasHub"] == (9.0, None) and bars["Model Garden"] == (None, None)
