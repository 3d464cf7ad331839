"""metrics.csv as it stands in the file, what is read of it, and the picture of its curves."""

import os

import pytest
from matplotlib import figure as matplotlib_figure

from albert_tf.training.report.metrics_file import MetricsFile, plot_curves, read_metrics
from data_pipeline.files import atomic_files


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "metrics.csv")


def text_of(path: str) -> str:
    with open(path, newline="") as file:
        return file.read()


def test_rows(path):
    file = MetricsFile(path, ["loss", "accuracy", "loss"], start_step=0)
    assert text_of(path) == "step,split,loss,accuracy\n"
    file.add(10, "train", {"loss": 1 / 3})
    file.add(10, "eval", {"accuracy": 1e-12, "loss": 123456789.0})
    assert text_of(path).splitlines()[1:] == ["10,train,0.3333333,", "10,eval,1.234568e+08,1e-12"]
    assert read_metrics(path) == [
        {"step": "10", "split": "train", "loss": "0.3333333", "accuracy": ""},
        {"step": "10", "split": "eval", "loss": "1.234568e+08", "accuracy": "1e-12"},
    ]


def test_a_resumed_run_keeps_what_was_before_its_checkpoint(path):
    """One that begins anew keeps nothing, not even the evaluation before its first update."""
    file = MetricsFile(path, ["loss"], start_step=0)
    for step in (0, 10, 20, 30):
        file.add(step, "train" if step else "eval", {"loss": float(step)})
    MetricsFile(path, ["accuracy", "loss"], start_step=20)
    expected = "step,split,accuracy,loss\n0,eval,,0\n10,train,,10\n20,train,,20\n"
    assert text_of(path) == expected
    MetricsFile(path, ["accuracy"], start_step=0)
    assert text_of(path) == "step,split,accuracy\n"


def test_a_metric_that_has_no_column_is_an_error(path):
    with pytest.raises(ValueError, match="other"):
        MetricsFile(path, ["loss"], 0).add(1, "train", {"other": 1.0})


def test_no_file(path):
    assert read_metrics(path) == []


@pytest.mark.parametrize(
    "torn",
    [
        *("30,train,7n0\n", "30,tra,1\n", "30", "30,train", "30,train\n", "x,train,1\n"),
        *(",train,1\n", "30,tr\0in,1\n", "\n", "30,tr\rin,1\n", '"0,train,1\n'),
    ],
)
def test_what_a_power_cut_tore(path, torn):
    """With a figure that is none, another split, without its end, with too few figures, without a
    step, with zeros, empty, with a byte that is another line's end or a quote.
    """
    MetricsFile(path, ["loss"], 0).add(10, "train", {"loss": 1.0})
    with open(path, "a") as file:
        file.write(torn)
    assert read_metrics(path) == [{"step": "10", "split": "train", "loss": "1"}]


def test_a_change_of_what_was_saved_is_told(path, capsys):
    file = MetricsFile(path, ["loss"], 0)
    file.add(10, "train", {"loss": 1.0})
    file.sync()
    file.add(20, "train", {"loss": 0.5})
    MetricsFile(path, ["loss"], 20).sync()
    assert not capsys.readouterr().out
    for change in (lambda text: text.replace("10,train,1", "10,train,2"), lambda text: text[:20]):
        text = text_of(path)
        with open(path, "w") as file:
            file.write(change(text))
        MetricsFile(path, ["loss"], 20)
        assert "metrics.csv is not as it was written" in capsys.readouterr().out
    os.remove(path)
    MetricsFile(path, ["loss"], 20)
    assert "metrics.csv is not as it was written" in capsys.readouterr().out


def test_it_is_made_safe_when_asked(path, monkeypatch):
    file, synced = MetricsFile(path, ["loss"], 0), []
    monkeypatch.setattr(atomic_files, "sync", synced.append)
    file.sync()
    assert synced[0] == path


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


def test_a_run_without_figures(tmp_path, drawn):
    plot_curves(str(tmp_path / "none.csv"), str(tmp_path / "curves.png"))
    assert [list(axes.lines) for axes in drawn[0].axes] == [[], []]
    assert all(axes.get_legend() is None for axes in drawn[0].axes)
    assert (tmp_path / "curves.png").exists()
