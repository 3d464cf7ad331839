"""Held-out figures of several tasks, best models, and predictions that can be read."""

import math
import threading

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.tasks import PretrainingTask
from albert_tf.training import BestModel, Evaluator, evaluation
from albert_tf.training.report.metrics_file import read_metrics

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def test_both_sentence_objectives(tiny_config, pretraining_data):
    """Each on its own data; the figures of the words are the first's."""
    model = AlbertPretrainer(tiny_config)
    tasks = [PretrainingTask(model, objective) for objective in ("sop", "nsp")]
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


@pytest.mark.parametrize(("higher_is_better", "kept"), [(True, [1, 4]), (False, [1, 3])])
def test_the_best_model_is_kept(tiny_config, tmp_path, higher_is_better, kept):
    folder = str(tmp_path / "best")
    best = BestModel(AlbertPretrainer(tiny_config), folder, "x", higher_is_better, {}, None, {})
    best.save_if_best(0, {"x": math.nan})
    assert not (tmp_path / "best").exists()
    steps = []
    for step, value in enumerate([0.5, math.nan, 0.4, 0.6, 0.45], start=1):
        best.save_if_best(step, {"x": value})
        steps.append(native.read_metadata(folder)["step"])
    assert list(dict.fromkeys(steps)) == kept


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
