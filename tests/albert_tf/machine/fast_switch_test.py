"""Without the fast form nothing is compiled by XLA, and training computes the same."""

from __future__ import annotations

import collections
import platform

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertPretrainer
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.layers.fast import gelu
from albert_tf.machine import fast_switch
from albert_tf.models.objectives import PretrainingObjective, total_loss
from albert_tf.optimization import LAMB
from albert_tf.training.steps import Stepper
from tests.conftest import pretraining_batch

pytestmark = pytest.mark.usefixtures("fast_choice")

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def make_stepper(config, strategy=ONE_DEVICE, packed=None, **settings) -> Stepper:
    keras.utils.set_random_seed(1)
    with strategy.scope():
        # A large epsilon: otherwise the first update is little more than the signs of rounding.
        model, optimizer = AlbertPretrainer(config, packed=packed), LAMB(0.02, epsilon=1.0)
        optimizer.build(model.trainable_variables)
    return Stepper(PretrainingObjective(model), optimizer, strategy, **settings)


def marks_of_xla(graph: tf.Graph) -> list[str]:
    """Names of operations and functions that only XLA can run, those inside functions included."""
    definition = graph.as_graph_def()
    library = definition.library.function
    nodes = [*definition.node, *(node for function in library for node in function.node_def)]
    names = [each.name for each in nodes if each.attr["_XlaMustCompile"].b or "Xla" in each.op]
    return names + [each.signature.name for each in library if each.attr["_XlaMustCompile"].b]


def traced(stepper: Stepper, data) -> list[str]:
    """The marks of XLA in the whole training step: loss, gradient and optimizer."""
    iterator = iter(stepper.distribute(data))
    return marks_of_xla(stepper.train.get_concrete_function(iterator, tf.constant(1)).graph)


# TensorFlow's own gradients of what GELU and normalization are made of. The fast ones have other
# formulas.
PLAIN_GRADIENTS = ("TanhGrad", "RsqrtGrad")


@pytest.mark.parametrize("recompute", [pytest.param(False, marks=pytest.mark.table), True])
def test_on_a_gpu_training_has_the_operations_of_the_plain_layers(
    recompute, monkeypatch, tiny_config
):
    """`auto` with a GPU is `off`, whose graph has nothing but TensorFlow's own operations."""
    monkeypatch.setattr(fast_switch, "has_gpu", lambda: True)
    config = tiny_config.replace(num_hidden_layers=1)

    def operations(mode: str, recompute: bool) -> collections.Counter:
        fast_switch.choose(mode)
        model = AlbertPretrainer(config.replace(recompute=recompute), packed=False)
        task = PretrainingObjective(model)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = total_loss(task, task.ratios(pretraining_batch(0), training=True))
            return tape.gradient(loss, model.trainable_variables)

        graph = step.get_concrete_function().graph
        assert (marks_of_xla(graph) == []) is (mode != "on")
        definition = graph.as_graph_def()
        bodies = [definition.node, *(each.node_def for each in definition.library.function)]
        return collections.Counter(node.op for body in bodies for node in body)

    plain, off, auto, on = (
        operations(*given)
        for given in (("off", False), *((mode, recompute) for mode in ("off", "auto", "on")))
    )
    assert auto == off
    for name in PLAIN_GRADIENTS:  # All of them, whatever is computed again.
        assert plain[name] == off[name] > on[name], name
    assert (off == plain) is not recompute


def test_on_compiles_also_where_nobody_chose(
    monkeypatch, tiny_config, two_devices, pretraining_data
):
    """The first trace finds out what `auto` means, in the thread of a replica."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    fast_switch.xla_error.cache_clear()
    stepper = make_stepper(tiny_config.replace(num_hidden_layers=1), two_devices)
    assert len(traced(stepper, pretraining_data(0))) > 20
    assert fast_switch._chosen is True


def test_off_leaves_no_xla_and_no_streams_in_evaluation(tiny_config):
    model = AlbertPretrainer(tiny_config.replace(max_position_embeddings=128))
    batch = dict.fromkeys(("input_word_ids", "input_mask"), tf.ones([8, 128], tf.int32))
    batch["masked_lm_positions"] = tf.zeros([8, 2], tf.int32)

    def softmaxes() -> int:
        graph = tf.function(lambda: model(batch)).get_concrete_function().graph
        assert marks_of_xla(graph) == []
        return sum(node.op == "Softmax" for node in graph.as_graph_def().node)

    fast_switch.choose("off")
    plain = softmaxes()
    fast_switch.choose("on")
    assert (plain, softmaxes()) == (2, 4)  # One a layer and stream.


@pytest.mark.table
def test_on_and_off_compute_the_same_with_dropout(tiny_config, pretraining_data):
    """Losses, gradient norm and the change of the weights by one update.

    Of padded rows: the fast form has packed rows in other numbers, and so other masks. Without
    dropout both forms equal the goldens (google_golden_test.py).
    """
    config = tiny_config.replace(num_hidden_layers=1, hidden_dropout_prob=0.1)

    def train(mode: str):
        fast_switch.choose(mode)
        stepper = make_stepper(config, packed=False)
        before = stepper.objective.model.get_weights()
        outcome = stepper.train(iter(stepper.distribute(pretraining_data(0))), tf.constant(1))
        change = [new - old for new, old in zip(stepper.objective.model.get_weights(), before)]
        return outcome.metrics, np.concatenate([values.ravel() for values in change])

    (metrics, change), (plain_metrics, plain_change) = map(train, ("on", "off"))
    for name, value in plain_metrics.items():
        assert float(metrics[name]) == pytest.approx(float(value), rel=1e-6), name
    assert np.linalg.norm(change - plain_change) < 1e-6 * np.linalg.norm(plain_change)


def test_a_whole_step_is_compiled_without_the_fast_form(tiny_config, pretraining_data):
    """--fast=off --jit_compile: one function by XLA, and none inside it."""
    fast_switch.choose("off")
    stepper = make_stepper(tiny_config.replace(num_hidden_layers=1), jit_compile=True)
    iterator = iter(stepper.distribute(pretraining_data(0)))
    graph = stepper.train.get_concrete_function(iterator, tf.constant(1)).graph
    library = graph.as_graph_def().library.function
    compiled = [each.signature.name for each in library if each.attr["_XlaMustCompile"].b]
    assert len(compiled) == 1 and "gradients" in compiled[0]


def test_exports_are_ordinary_operations_whatever_was_chosen():
    fast_switch.choose("on")
    spec = tf.TensorSpec([None, 3])

    def marks() -> list[str]:
        return marks_of_xla(tf.function(lambda x: gelu.gelu(x)).get_concrete_function(spec).graph)

    assert marks()
    with fast_switch.switched_off():
        assert not marks()


def test_xla_that_cannot_compile(monkeypatch, capfd):
    """Strings are what XLA cannot compile on any machine."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(fast_switch, "_trial", lambda x: tf.strings.length(tf.strings.as_string(x)))
    fast_switch.xla_error.cache_clear()
    try:
        capfd.readouterr()
        assert fast_switch.choose("auto") is False and not fast_switch.is_on()
        (line,) = [line for line in capfd.readouterr().err.splitlines() if "XLA" in line]
        assert line.startswith("--fast=auto is off: XLA cannot compile on this machine: ")
        with pytest.raises(UserError, match="--fast=on needs XLA, .* Use --fast=off"):
            fast_switch.choose("on")
        assert fast_switch.choose("off") is False
        assert not capfd.readouterr().err
    finally:
        fast_switch.xla_error.cache_clear()


def test_an_unknown_mode():
    with pytest.raises(UserError, match="--fast=true is not one of auto, on, off"):
        fast_switch.choose("true")


@pytest.mark.parametrize(
    ("system", "accelerator", "expected"),
    [
        ("Linux", None, True),
        ("Linux", "GPU", False),
        ("Linux", "TPU", False),
        ("Darwin", None, False),
    ],
)
def test_auto(monkeypatch, system, accelerator, expected):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(fast_switch, "xla_error", str)
    monkeypatch.setattr(fast_switch, "has_gpu", lambda: accelerator == "GPU")
    monkeypatch.setattr(fast_switch, "has_tpu", lambda: accelerator == "TPU")
    assert fast_switch.choose() is expected


def test_xla_compiles_here():
    assert fast_switch.xla_error() == ""
