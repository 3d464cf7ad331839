"""What training flags stand for at their limits."""

from __future__ import annotations

import pytest
import tensorflow as tf
from absl.flags import FLAGS

from albert_tf import flags as shared_flags
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization import Recipe
from albert_tf.training import Stepper, memory
from data_pipeline.command_line import flags


@pytest.fixture
def parse(new_flags):
    """(*argv) -> sets the flags that training programs share."""
    with new_flags():
        shared_flags.define_model_flags()
        shared_flags.define_training_flags("lamb", 0.001, 32)
        shared_flags.define_device_flags()
        flags.DEFINE_integer("seed", 0, "Of everything.")
        yield lambda *argv: FLAGS(["program", *argv])


@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
@pytest.mark.parametrize("given, expected", [("0", None), ("0.5", 0.5)])
def test_a_clipnorm_of_zero_turns_clipping_off(parse, tiny_config, optimizer, given, expected):
    parse(f"--optimizer={optimizer}", f"--global_clipnorm={given}")
    made = shared_flags.make_optimizer(tiny_config, Recipe(0.1, 10, 1))
    assert made.global_clipnorm == expected
    variable = tf.Variable([3.0, 4.0])
    made.apply_gradients([(tf.constant([30.0, 40.0]), variable)])
    assert bool(tf.reduce_all(tf.math.is_finite(variable)))


def test_the_largest_seed_can_be_used(parse):
    parse(f"--seed={flags.INTEGER_LIMIT}")
    keras.utils.set_random_seed(FLAGS.seed)
    Stepper(None, None, tf.distribute.get_strategy(), FLAGS.seed)
    tf.random.stateless_uniform([2], [FLAGS.seed, 0])


@pytest.mark.parametrize("size, examples", [(33, 32), (1000, 40)])
def test_a_batch_has_no_example_twice(parse, tiny_config, size, examples):
    parse(f"--train_batch_size={size}")
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with pytest.raises(UserError, match=f"^--train_batch_size={size} is more than the {examples} "):
        shared_flags.check_train_batch(tiny_config, 16, examples, "train.tsv", strategy)
    shared_flags.check_train_batch(tiny_config, 16, size, "train.tsv", strategy)


def test_batches_that_no_memory_holds_are_refused(parse, tiny_config, monkeypatch):
    """Of a machine with 1 GiB; albert-base takes about 60 MiB for 512 tokens."""
    monkeypatch.setattr(memory, "machine_bytes", lambda: 2**30)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    config = shared_flags.get_preset("albert-base-v2")
    parse("--train_batch_size=100")
    with pytest.raises(UserError, match="^--train_batch_size=100 needs about .* machine has 1"):
        shared_flags.check_train_batch(config, 512, 10**6, "records", strategy)
    parse("--train_batch_size=100", "--gradient_accumulation_steps=50")
    shared_flags.check_train_batch(config, 512, 10**6, "records", strategy)
    parse("--eval_batch_size=10000")
    with pytest.raises(UserError, match="^--eval_batch_size=10000 needs about .* machine has 1"):
        shared_flags.evaluation_batch(config, 512, 10**6, strategy)
    assert shared_flags.evaluation_batch(config, 512, 3, strategy) == 3


def test_this_machine_has_memory():
    assert 2**28 < memory.machine_bytes() < 2**50
