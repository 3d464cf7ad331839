"""What a run shows and stores while it goes on."""

import sys
from types import SimpleNamespace

import pytest
import tensorflow as tf

from albert_tf.training.report import progress
from albert_tf.training.report.metrics_file import read_metrics
from albert_tf.training.report.progress import Reporter, SilentReporter, StepCost


def reporter(folder, start_step=0, eval_metrics=("loss", "accuracy")):
    cost = StepCost(tokens=100, flops=1e6, machine_flops_per_second=1e9)
    return Reporter(str(folder), ("loss",), eval_metrics, 1000, start_step, cost)


def tags(folder):
    """Names and values in the TensorBoard files of a folder."""
    found = {}
    for path in folder.glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found[value.tag] = tf.make_ndarray(value.tensor)
    return found


def test_tensorboard_and_csv(tmp_path, capsys):
    found = reporter(tmp_path)
    details = {"trust_ratio": {"kernel": tf.constant(0.5)}, "update": {"norm": tf.constant(2.0)}}
    metrics = {"loss": 3.0, "learning_rate": 0.1, "gradient_norm": 1.5}
    found.train(1000, metrics, details)
    found.evaluation(1000, {"loss": 2.5, "accuracy": 0.25})
    found.examples(1000, "**right**")
    found.close()
    train = tags(tmp_path / "tensorboard" / "train")
    expected = {**metrics, "trust_ratio/kernel": 0.5, "update/norm": 2.0}
    assert {name: float(train[name]) for name in expected} == pytest.approx(expected)
    assert train["tokens_per_second"] > 0
    share = 1e6 * float(train["tokens_per_second"]) / 100 / 1e9
    assert float(train["share_of_matmul"]) == pytest.approx(share, rel=1e-3)
    held_out = tags(tmp_path / "tensorboard" / "eval")
    assert float(held_out["accuracy"]) == 0.25 and held_out["predictions"].item() == b"**right**"
    rows = read_metrics(str(tmp_path / "metrics.csv"))
    assert [(row["split"], row["loss"], row["accuracy"]) for row in rows] == [
        ("train", "3", ""),
        ("eval", "2.5", "0.25"),
    ]
    shown = capsys.readouterr().out
    assert (
        "step 1000/1000  loss 3.0000  lr 1.00e-01" in shown
        and "tokens/s" in shown
        and "ETA 0:00:00" in shown
    )
    assert "evaluation at step 1000: loss 2.5000  accuracy 0.2500" in shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0:00:00"), (59.6, "0:01:00"), (3661, "1:01:01"), (86400, "24:00:00")],
)
def test_durations(seconds, text):
    assert progress._duration(seconds) == text


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


METRICS = {"loss": 3.0, "learning_rate": 0.1, "gradient_norm": 1.5}


def test_rates_and_the_time_that_is_left(tmp_path, capsys, clock):
    found = reporter(tmp_path)
    clock[0] = 10.0
    found.train(20, METRICS)  # Two steps of 100 tokens a second; too early for a line.
    assert not capsys.readouterr().out
    clock[0] = 30.0
    found.restart_clock()  # Somebody evaluated.
    clock[0] = 35.0
    found.train(40, METRICS)
    line = "step 40/1000  loss 3.0000  lr 1.00e-01  400 tokens/s (0% of matmul)  ETA 0:04:00\n"
    assert capsys.readouterr().out == line
    found.close()
    rows = read_metrics(str(tmp_path / "metrics.csv"))
    assert [float(row["tokens_per_second"]) for row in rows] == [200.0, 400.0]


def test_smaller_steps_count_as_parts_of_one(tmp_path, capsys, clock):
    """Of 1,000 steps of 100 tokens, the first 10 had 50: 995 whole ones, 5 in the first second."""
    cost = StepCost(tokens=100, whole_steps=lambda step: step - min(step, 10) / 2)
    found = Reporter(str(tmp_path), ("loss",), (), 1000, 0, cost)
    clock[0] = 20.0
    found.train(10, METRICS)
    assert "  25 tokens/s  ETA 1:06:00" in capsys.readouterr().out
    clock[0] = 40.0
    found.train(15, METRICS)
    found.close()
    assert "  25 tokens/s  ETA 1:05:40" in capsys.readouterr().out


def test_a_machine_that_nobody_measured(tmp_path, capsys, clock):
    found = Reporter(str(tmp_path), ("loss",), (), 10, 0, StepCost(tokens=50))
    clock[0] = 1.0
    found.train(10, METRICS)
    found.close()
    assert "  500 tokens/s  ETA 0:00:00" in capsys.readouterr().out
    assert "share_of_matmul" not in tags(tmp_path / "tensorboard" / "train")


def test_other_workers_say_nothing(capsys):
    silent = SilentReporter()
    assert silent.train(1, METRICS) is None and silent.close() is None
    assert not capsys.readouterr().out


def test_figures_are_made_safe(tmp_path, monkeypatch):
    found, synced = reporter(tmp_path), []
    monkeypatch.setattr(found._metrics_file, "sync", lambda: synced.append(True))
    found.sync()
    found.close()
    assert synced == [True]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_is_for_terminals(tmp_path, monkeypatch, is_terminal):
    made, tqdm = [], progress.tqdm

    def bar(**settings):
        made.append(settings)
        return tqdm(**{**settings, "disable": True})

    stderr = SimpleNamespace(isatty=lambda: is_terminal)
    monkeypatch.setattr(progress, "tqdm", bar)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stderr, stdout=sys.stdout))
    reporter(tmp_path, start_step=20).close()
    (settings,) = made
    assert settings["disable"] is not is_terminal
    assert (settings["total"], settings["initial"]) == (1000, 20)


def test_without_a_terminal_there_is_a_line_now_and_then(tmp_path, capsys, clock):
    found = reporter(tmp_path)
    shown = []
    for step, time in enumerate((10.0, 15.0, 15.5, 30.0, 31.0), start=1):
        clock[0] = time
        found.train(step, METRICS)
        shown.append(bool(capsys.readouterr().out))
    found.close()
    assert shown == [False, False, True, False, True]
