"""Killed at any moment, a run goes on and ends with the same bits as one that never stopped.

Run as a program, this file trains in a child process and kills it again and again.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.losses import cross_entropy, weighted_mean
from albert_tf.optimization import LAMB, WarmupPolynomialDecay
from albert_tf.training import LoopSettings, StepCost, Stepper, train

BATCH, WORDS, WIDTH = 4, 3000, 64  # Many words: a save takes a while.


class WordTask:
    """Tells odd words from even ones, with dropout: small, so that a run starts quickly."""

    losses: ClassVar = {"cross_entropy": "weights"}
    metrics = ("cross_entropy",)

    def __init__(self) -> None:
        self.model = keras.Sequential(
            [keras.layers.Embedding(WORDS, WIDTH), keras.layers.Dense(2, name="kernel")]
        )
        self.model.build([None])

    def ratios(self, batch, training, seed):
        table, kernel, bias = self.model.trainable_variables
        hidden = tf.gather(table, batch["words"])
        hidden = tf.nn.experimental.stateless_dropout(hidden, 0.1, seed)
        logits = tf.matmul(hidden, kernel) + bias
        return {
            "cross_entropy": weighted_mean(
                cross_entropy(logits, batch["words"] % 2), batch["weights"]
            )
        }


def batch(step: tf.Tensor) -> dict[str, tf.Tensor]:
    """Made-up data, a function of the step."""
    seed = [tf.cast(step, tf.int32), 3]
    words = tf.random.stateless_uniform([BATCH], seed, 0, WORDS, tf.int32)
    return {"words": words, "weights": tf.ones([BATCH])}


def run(run_dir: str, num_devices: int, num_steps: int) -> None:
    """Trains with a checkpoint after every second step, and writes all variables to the end."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * num_devices,
    )
    strategy = tf.distribute.MirroredStrategy(
        [device.name for device in tf.config.list_logical_devices("CPU")]
    )
    keras.utils.set_random_seed(2)
    with strategy.scope():
        task = WordTask()
        optimizer = LAMB(WarmupPolynomialDecay(0.02, num_steps, 5))
    stepper = Stepper(task, optimizer, strategy, seed=4)
    settings = LoopSettings(num_steps, steps_per_loop=1, checkpoint_steps=2, keep_checkpoints=2)

    def data(start_step: int) -> tf.data.Dataset:
        return tf.data.Dataset.range(start_step, 1 << 40).map(batch)

    train(stepper, data, None, settings, run_dir, StepCost(BATCH))
    variables = [*task.model.variables, *optimizer.variables]
    np.savez(os.path.join(run_dir, "end"), *[variable.numpy() for variable in variables])


def start(*arguments: str | int) -> int:
    """A child that runs; TensorFlow is imported here, but not in use yet, so it may be forked."""
    child = os.fork()
    if child == 0:
        os.environ["TQDM_DISABLE"] = "1"
        run(*arguments)
        os._exit(0)
    return child


def saves_under_way(run_dir: str) -> set[str]:
    return {path.name for path in Path(run_dir, "checkpoints").glob("step-*_temp")}


def kill_again_and_again(run_dir: str, num_devices: int, num_steps: int, num_kills: int) -> None:
    """Kills after some saves: every other time during the last of them, else a little later."""
    rng, kills, during_saves = random.Random(num_devices), 0, 0
    while kills < num_kills:
        child, seen, wanted = start(run_dir, num_devices, num_steps), set(), rng.randint(1, 5)
        while len(seen) < wanted:
            if os.waitpid(child, os.WNOHANG)[0]:
                sys.exit(f"the run ended after {kills} kills")
            seen |= saves_under_way(run_dir)
            time.sleep(0.0005)
        if kills % 2:
            time.sleep(rng.uniform(0.0, 0.1))
        during_saves += bool(saves_under_way(run_dir))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    assert os.waitpid(start(run_dir, num_devices, num_steps), 0)[1] == 0
    print(f"killed {kills} times, {during_saves} of them during a save")


@pytest.mark.parametrize(("num_devices", "num_steps", "num_kills"), [(1, 220, 20), (2, 70, 3)])
def test_killed_at_many_moments(tmp_path, num_devices, num_steps, num_kills):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder, kills in ((whole, 0), (killed, num_kills)):
        numbers = map(str, (num_devices, num_steps, kills))
        command = [sys.executable, __file__, str(folder), *numbers]
        result = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert result.returncode == 0, result.stderr[-3000:]
    print(result.stdout)
    with np.load(whole / "end.npz") as expected, np.load(killed / "end.npz") as found:
        assert expected.files == found.files
        for name in expected.files:
            np.testing.assert_array_equal(expected[name], found[name])


if __name__ == "__main__":
    kill_again_and_again(sys.argv[1], *map(int, sys.argv[2:]))
