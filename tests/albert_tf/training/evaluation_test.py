"""Held-out figures of several tasks, beside baselines, and of checkpoints as they appear."""

import math
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.training import Evaluator, evaluation
from albert_tf.training.report.metrics_file import read_metrics

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


@pytest.mark.usefixtures("eager")
def test_both_sentence_objectives(tiny_config, pretraining_data):
    """Each on its own data; the figures of the words are the first's."""
    model = AlbertPretrainer(tiny_config)
    tasks = [PretrainingObjective(model, objective) for objective in ("sop", "nsp")]
    datasets = [pretraining_data(0).take(2), pretraining_data(100).take(2)]
    first, second = (Evaluator([part], ONE_DEVICE)() for part in zip(tasks, datasets))
    both = Evaluator(list(zip(tasks, datasets)), ONE_DEVICE)
    figures = both()
    assert tuple(figures) == both.metrics
    for name, value in first.items():
        assert figures[name] == pytest.approx(value), name
    assert figures["next_sentence_loss"] == pytest.approx(second["next_sentence_loss"])
    assert first["masked_lm_loss"] != pytest.approx(second["masked_lm_loss"])
    assert figures["masked_lm_perplexity"] == pytest.approx(math.exp(figures["masked_lm_loss"]))


class Follower:
    """Stands for an Evaluator: records the weight, and does what is to come next."""

    metrics = ("loss",)

    def __init__(self, model, *events):
        self.seen, self._model, self._events = [], model, list(events)

    def __call__(self):
        self.seen.append(float(self._model.weights[0][0, 0]))
        if self._events:
            self._events.pop(0)()
        return {"loss": 1.0}


def test_checkpoints_are_followed_without_what_tensorflow_writes_of_them(tmp_path, monkeypatch):
    """Its file is lost at first and garbled later; a checkpoint that is damaged is passed over."""
    monkeypatch.setattr(evaluation, "_POLL_SECONDS", 0.01)
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,))])
    folder = tmp_path / "checkpoints"

    def write(step):
        model.set_weights([np.full(w.shape, float(step)) for w in model.get_weights()])
        tf.train.Checkpoint(model=model).write(str(folder / f"step-{step}"))

    def damaged_then_good():
        (folder / "checkpoint").write_bytes(b"\0garbled")
        (folder / "step-8.index").write_bytes(b"")
        threading.Timer(0.2, lambda: write(12)).start()

    write(4)
    follower = Follower(model, damaged_then_good)
    figures = evaluation.evaluate_checkpoints(model, follower, str(tmp_path), 12, timeout=60)
    assert figures == {"loss": 1.0} and follower.seen == [4.0, 12.0]
    rows = read_metrics(str(tmp_path / "continuous_eval" / "metrics.csv"))
    assert [row["step"] for row in rows] == ["4", "12"]


def test_no_checkpoint_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "_POLL_SECONDS", 0.01)
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,))])
    assert evaluation.evaluate_checkpoints(model, Follower(model), str(tmp_path), 9, 0.05) == {}


@pytest.mark.parametrize(
    ("batch_size", "num_examples", "replicas", "expected"),
    [
        (8, 100, 1, 8),
        (8, 5, 1, 5),
        (8, 5, 2, 6),
        (8, 6, 2, 6),
        (8, 100, 3, 9),
        (8, 7, 3, 9),
        (2, 9, 4, 4),
    ],
)
def test_a_batch_is_no_larger_than_the_data(
    tiny_config, monkeypatch, batch_size, num_examples, replicas, expected
):
    """Each replica has the same share, and the memory for it is there."""
    checked = []
    monkeypatch.setattr(evaluation, "check_evaluation_memory", lambda *given: checked.append(given))
    strategy = SimpleNamespace(num_replicas_in_sync=replicas)
    found = evaluation.evaluation_batch_size(tiny_config, batch_size, 12, num_examples, strategy)
    assert found == expected and checked == [(tiny_config, expected, 12, strategy)]


def test_figures_beside_baselines(capsys):
    evaluation.print_comparison("Title", {"accuracy": (0.5, 0.25, "majority")})
    assert capsys.readouterr().out.splitlines() == [
        "Title",
        "                                model  baseline",
        "  accuracy                     0.5000    0.2500  (majority)",
    ]


def test_names_of_figures():
    """Perplexity follows from the loss of the words, where there is one."""

    def metrics(*parts: tuple[str, ...]) -> tuple[str, ...]:
        tasks = [SimpleNamespace(model=None, metrics=names, losses={}) for names in parts]
        data = tf.data.Dataset.range(1).batch(1)
        return Evaluator([(task, data) for task in tasks], ONE_DEVICE).metrics

    assert metrics(("a", "b"), ("b", "c")) == ("loss", "a", "b", "c")
    assert metrics(("masked_lm_loss",)) == ("loss", "masked_lm_loss", "masked_lm_perplexity")


def test_the_perplexity_of_a_model_that_has_diverged_is_a_number(monkeypatch):
    task = SimpleNamespace(model=None, metrics=("masked_lm_loss",), losses={})
    evaluator = Evaluator([(task, tf.data.Dataset.range(1).batch(1))], ONE_DEVICE)
    for loss, expected in ((2.0, math.exp(2.0)), (1e6, math.exp(709.0))):
        figures = {"loss": loss, "masked_lm_loss": loss}
        monkeypatch.setattr(evaluation.Stepper, "evaluate", lambda *_, found=figures: found)
        assert evaluator()["masked_lm_perplexity"] == expected
