"""Batches that no memory holds."""

import pytest
import tensorflow as tf

from albert_tf.analysis.costs import count_parameters, training_bytes
from albert_tf.errors import UserError
from albert_tf.pretrained.presets import get_preset
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
    with pytest.raises(UserError, match="^--flag=100 needs about .* machine has 1"):
        memory.check_training_memory(config, 100, 1, 512, kinds[strategy], "--flag=100")
    memory.check_training_memory(config, 100, 50, 512, kinds[strategy], "--flag=100")


def test_evaluation_takes_no_more_than_there_is(one_gigabyte):
    strategy, config = tf.distribute.OneDeviceStrategy("/cpu:0"), get_preset("albert-base-v2")
    with pytest.raises(UserError, match="^--eval_batch_size=10000 needs about .* machine has 1"):
        evaluation_batch_size(config, 10000, 512, 10**6, strategy)
    assert evaluation_batch_size(config, 10000, 512, 3, strategy) == 3


@pytest.fixture
def needed(monkeypatch) -> list:
    """What is asked for: (flag with its value, bytes)."""
    asked = []
    monkeypatch.setattr(memory, "_check", lambda *given: asked.append(given[:2]))
    return asked


def test_an_update_holds_the_share_of_each_replica_here(tiny_config, needed, two_devices):
    one = tf.distribute.OneDeviceStrategy("/cpu:0")
    size = sum(count_parameters(tiny_config).values())
    memory.check_training_memory(tiny_config, 12, 1, 10, one, "--flag=12")
    memory.check_training_memory(tiny_config, 12, 3, 10, one, "--flag=12")
    memory.check_training_memory(tiny_config, 12, 3, 10, two_devices, "--other=6@0,12@5")
    assert needed == [
        ("--flag=12", training_bytes(tiny_config, size, 12, 10)),
        ("--flag=12", training_bytes(tiny_config, size, 4, 10)),
        # Each device has its weights; the batch is one batch.
        ("--other=6@0,12@5", training_bytes(tiny_config, 2 * size, 4, 10)),
    ]


def test_evaluation_keeps_the_activations_of_one_layer(tiny_config, needed, two_devices):
    memory.check_evaluation_memory(tiny_config, 12, 10, two_devices)
    again = tiny_config.replace(recompute=True)
    assert needed == [("--eval_batch_size=12", training_bytes(again, 0, 12, 10))]


def test_twice_the_memory_is_too_much(monkeypatch):
    """The estimate is not below what is needed, and may be far above."""
    monkeypatch.setattr(memory, "machine_bytes", lambda: 3 * 2**30)
    memory._check("--flag=5", 6 * 2**30, "Help.")
    with pytest.raises(UserError, match=r"--flag=5 needs about 6 GiB .* machine has 3\. Help\."):
        memory._check("--flag=5", 6 * 2**30 + 1, "Help.")
    for kind in ("GPU", "TPU"):
        with monkeypatch.context() as accelerated:
            accelerated.setattr(
                tf.config, "list_logical_devices", lambda asked, kind=kind: [1] * (asked == kind)
            )
            memory._check("--flag=5", 2**60, "Help.")
