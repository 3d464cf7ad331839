"""A run with a decay at its end goes on, when made longer, as if it had never decayed."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import LAMB, WarmupConstantDecay
from albert_tf.training import LoopSettings, StepCost, Stepper, train
from albert_tf.training.checkpoint_files import find

pytestmark = pytest.mark.usefixtures("eager")


def run(config, data, run_dir, num_train_steps):
    """Trains with a decay in the last half; returns the weights at the end."""
    tf.keras.utils.set_random_seed(3)
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        model = AlbertPretrainer(config)
        schedule = WarmupConstantDecay(0.02, num_train_steps, 1, decay_share=0.5)
    stepper = Stepper(PretrainingObjective(model), LAMB(schedule), strategy, seed=5)
    settings = LoopSettings(num_train_steps, steps_per_loop=3, checkpoint_steps=3)
    cost = StepCost(tokens=96)
    train(stepper, data, None, settings, str(run_dir), cost, decay_start=schedule.decay_start)
    return [variable.numpy() for variable in model.variables]


def test_a_longer_run_goes_on_from_before_the_decay(
    tiny_config, pretraining_data, tmp_path, capsys
):
    config = tiny_config.replace(hidden_dropout_prob=0.1)
    expected = run(config, pretraining_data, tmp_path / "whole", 4)
    run(config, pretraining_data, tmp_path / "stretches", 2)
    assert find(str(tmp_path / "stretches" / "checkpoints" / "before_decay")) == [1]
    assert "falls from step 1 on; its checkpoint is kept" in capsys.readouterr().out

    longer = run(config, pretraining_data, tmp_path / "stretches", 4)
    for left, right in zip(longer, expected):
        np.testing.assert_array_equal(left, right)
    assert "resuming from step 1, before the former decay" in capsys.readouterr().out
    assert find(str(tmp_path / "stretches" / "checkpoints" / "before_decay")) == [2]
