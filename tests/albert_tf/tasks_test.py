"""What is minimized, for each objective that records may have been made for."""

import pytest
import tensorflow as tf

from albert_tf.models import AlbertPretrainer
from albert_tf.optimization import LAMB
from albert_tf.tasks import PretrainingTask
from albert_tf.training import Stepper

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


@pytest.mark.parametrize(
    ("objective", "names"),
    [
        ("sop", ["masked_lm", "sentence_order"]),
        ("nsp", ["masked_lm", "next_sentence"]),
        ("none", ["masked_lm"]),
    ],
)
def test_the_objective_names_losses_and_metrics(tiny_config, pretraining_data, objective, names):
    task = PretrainingTask(AlbertPretrainer(tiny_config), objective)
    figures = Stepper(task, None, ONE_DEVICE).evaluate(pretraining_data(0).take(2))
    expected = [f"{name}_{kind}" for name in names for kind in ("loss", "accuracy")]
    assert sorted(figures) == sorted([*expected, "loss"])
    assert figures["loss"] == pytest.approx(sum(figures[f"{name}_loss"] for name in names))


def test_without_a_pair_objective_its_head_stays_as_it_is(tiny_config, pretraining_data):
    task = PretrainingTask(AlbertPretrainer(tiny_config), "none")
    before = {variable.name: variable.numpy() for variable in task.model.trainable_variables}
    stepper = Stepper(task, LAMB(0.01), ONE_DEVICE)
    stepper.optimizer.build(task.model.trainable_variables)
    stepper.train(iter(stepper.distribute(pretraining_data(0))), tf.constant(2))
    for variable in task.model.trainable_variables:
        unused = "pooler" in variable.name or "sentence_order" in variable.name
        assert (variable.numpy() == before[variable.name]).all() == unused, variable.name
