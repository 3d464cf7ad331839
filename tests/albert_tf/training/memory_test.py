"""Batches that no memory holds."""

from __future__ import annotations

import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.presets import get_preset
from albert_tf.training import memory
from albert_tf.training.evaluation import evaluation_batch_size


@pytest.fixture
def one_gigabyte(monkeypatch):
    """A machine with 1 GiB; albert-base takes about 60 MiB for 512 tokens."""
    monkeypatch.setattr(memory, "machine_bytes", lambda: 2**30)


@pytest.mark.parametrize("strategy", ["one device", "default"])
def test_batches_that_no_memory_holds_are_refused(one_gigabyte, strategy):
    kinds = {
        "one device": tf.distribute.OneDeviceStrategy("/cpu:0"),
        "default": tf.distribute.get_strategy(),
    }
    config = get_preset("albert-base-v2")
    with pytest.raises(UserError, match="^--train_batch_size=100 needs about .* machine has 1"):
        memory.check_training_memory(config, 100, 1, 512, kinds[strategy])
    memory.check_training_memory(config, 100, 50, 512, kinds[strategy])


def test_evaluation_takes_no_more_than_there_is(one_gigabyte):
    strategy, config = tf.distribute.OneDeviceStrategy("/cpu:0"), get_preset("albert-base-v2")
    with pytest.raises(UserError, match="^--eval_batch_size=10000 needs about .* machine has 1"):
        evaluation_batch_size(config, 10000, 512, 10**6, strategy)
    assert evaluation_batch_size(config, 10000, 512, 3, strategy) == 3


def test_this_machine_has_memory():
    assert 2**28 < memory.machine_bytes() < 2**50
