"""The picture of a run's figures: which lines are drawn, in which style."""

from __future__ import annotations

import struct

import pytest
from matplotlib import figure as matplotlib_figure

from albert_tf.training.report.curves import plot_curves

CSV = """step,split,loss,mlm_accuracy,learning_rate,other_loss
10,train,3.5,0.1,0.01,
20,train,3.0,0.2,0.02,
20,eval,2.5,,,1.0
"""


@pytest.fixture
def drawn(monkeypatch) -> list:
    """The figures that are saved."""
    figures, save = [], matplotlib_figure.Figure.savefig

    def note(figure, file, **settings):
        figures.append(figure)
        save(figure, file, **settings)

    monkeypatch.setattr(matplotlib_figure.Figure, "savefig", note)
    return figures


def lines(axes) -> dict[str, tuple]:
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()), line.get_linestyle())
        for line in axes.lines
    }


def test_losses_and_accuracies(tmp_path, drawn):
    (tmp_path / "metrics.csv").write_text(CSV)
    plot_curves(str(tmp_path / "metrics.csv"), str(tmp_path / "curves.png"))
    left, right = drawn[0].axes
    assert lines(left) == {
        "loss (train)": ([10, 20], [3.5, 3.0], "-"),
        "loss (eval)": ([20], [2.5], ":"),
        "other_loss (eval)": ([20], [1.0], ":"),
    }
    assert lines(right) == {"mlm_accuracy (train)": ([10, 20], [0.1, 0.2], "-")}
    assert [axes.get_ylabel() for axes in (left, right)] == ["loss (nats)", "accuracy"]
    assert [axes.get_xlabel() for axes in (left, right)] == ["step", "step"]
    assert left.get_legend() and left.lines[1].get_marker() == "o"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_size_and_style(tmp_path, drawn):
    (tmp_path / "metrics.csv").write_text(CSV)
    plot_curves(str(tmp_path / "metrics.csv"), str(tmp_path / "curves.png"))
    header = (tmp_path / "curves.png").read_bytes()[16:24]
    assert struct.unpack(">II", header) == (1320, 480)  # 11 x 4 inches of 120 points.
    axes = drawn[0].axes[0]
    assert {(line.get_linewidth(), line.get_markersize()) for line in axes.lines} == {(1.2, 4)}
    assert axes.get_legend().get_texts()[0].get_fontsize() == 8
    assert axes.xaxis.get_gridlines()[0].get_alpha() == 0.3


def test_a_run_without_figures(tmp_path, drawn):
    plot_curves(str(tmp_path / "none.csv"), str(tmp_path / "curves.png"))
    assert [list(axes.lines) for axes in drawn[0].axes] == [[], []]
    assert all(axes.get_legend() is None for axes in drawn[0].axes)
    assert (tmp_path / "curves.png").exists()
