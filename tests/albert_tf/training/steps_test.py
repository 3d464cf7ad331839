"""One update: the same for any number of micro-batches and replicas, compiled or not."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import LAMB
from albert_tf.training.steps import Stepper

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def after(config, data, num_steps=1, strategy=ONE_DEVICE, objective="sop", **settings):
    """Change of the weights by some updates of SGD from the same start, and the outcome."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model, optimizer = AlbertPretrainer(config), keras.optimizers.SGD(1.0)
        optimizer.build(model.trainable_variables)
    before = model.get_weights()
    stepper = Stepper(PretrainingObjective(model, objective), optimizer, strategy, **settings)
    outcome = stepper.train(iter(stepper.distribute(data)), tf.constant(num_steps))
    change = [new - old for new, old in zip(model.get_weights(), before)]
    return np.concatenate([values.ravel() for values in change]), outcome


def difference(left, right):
    """Of two changes, relative to the first."""
    return np.linalg.norm(left - right) / np.linalg.norm(left)


@pytest.mark.fast_layers
@pytest.mark.parametrize(
    ("objective", "num_micro_batches"),
    [("sop", 4), pytest.param("none", 2, marks=pytest.mark.table)],
)
def test_accumulation_is_the_large_batch(
    tiny_config, pretraining_data, objective, num_micro_batches
):
    settings = {"data": pretraining_data(0), "objective": objective}
    whole, expected = after(tiny_config, **settings)
    parts, outcome = after(tiny_config, num_micro_batches=num_micro_batches, **settings)
    assert difference(whole, parts) < 1e-6
    for name, value in expected.metrics.items():
        assert float(outcome.metrics[name]) == pytest.approx(float(value), rel=1e-5), name


@pytest.mark.usefixtures("eager")
def test_figures_are_those_of_the_weights_before_the_update(tiny_config, pretraining_data):
    data = pretraining_data(0).take(1)
    _, outcome = after(tiny_config, data)
    keras.utils.set_random_seed(1)
    stepper = Stepper(PretrainingObjective(AlbertPretrainer(tiny_config)), None, ONE_DEVICE)
    for name, value in stepper.evaluate(stepper.distribute(data)).items():
        assert float(outcome.metrics[name]) == pytest.approx(value, rel=1e-5), name


def batches_of(size):
    return tf.data.Dataset.range(1000).batch(size, drop_remainder=True)


@pytest.mark.parametrize("size", [8, 5])
def test_replicas_share_the_batches_of_a_function(two_devices, size):
    """As they share those of a dataset, also where the parts cannot be equal."""
    stepper = Stepper(None, None, two_devices)
    shared = stepper.distribute(lambda: batches_of(size)), stepper.distribute(batches_of(size))
    for left, right in itertools.islice(zip(*shared), 3):
        left, right = map(two_devices.experimental_local_results, (left, right))
        assert [part.numpy().tolist() for part in left] == [part.numpy().tolist() for part in right]
    assert shared[0].element_spec == shared[1].element_spec  # Static shapes where it can be.


class OneHostOfTwo:
    """A strategy of four replicas, as the second of two hosts sees it."""

    @staticmethod
    def distribute_datasets_from_function(read):
        return read(tf.distribute.InputContext(2, 1, 4))


def test_a_host_makes_its_own_rows_only():
    contexts = []

    def data(input_context):
        contexts.append(input_context)
        return batches_of(6)

    parts = Stepper(None, None, OneHostOfTwo()).distribute(data)
    assert [context.input_pipeline_id for context in contexts] == [1]
    assert [part.tolist() for part in parts.take(2).as_numpy_iterator()] == [[0, 1, 2], [3, 4, 5]]


def test_accumulation_on_two_replicas(
    tiny_config, two_devices, pretraining_data, monkeypatch, eagerly
):
    """Equals one device; the replicas add up once for an update, not in the inner loop."""
    with eagerly():
        whole, _ = after(tiny_config, pretraining_data(0))
    original, depths = tf.distribute.ReplicaContext.all_reduce, []

    def all_reduce(*args, **kwargs):
        graph, depth = tf.compat.v1.get_default_graph(), 0
        while (graph := getattr(graph, "outer_graph", None)) is not None:
            depth += 1
        depths[-1].append(depth)
        return original(*args, **kwargs)

    monkeypatch.setattr(tf.distribute.ReplicaContext, "all_reduce", all_reduce)
    for num_micro_batches in (1, 4):
        depths.append([])
        settings = {"strategy": two_devices, "num_micro_batches": num_micro_batches}
        parts, _ = after(tiny_config, pretraining_data(0), **settings)
        assert difference(whole, parts) < 1e-6
    assert depths[0] and depths[0] == depths[1]


@pytest.mark.parametrize("num_micro_batches", [2, pytest.param(1, marks=pytest.mark.table)])
def test_compiled_by_xla(tiny_config, pretraining_data, eagerly, num_micro_batches):
    """Static shapes, as a TPU needs them."""
    with eagerly():
        plain, _ = after(tiny_config, pretraining_data(0))
    settings = {"jit_compile": True, "num_micro_batches": num_micro_batches}
    compiled, outcome = after(tiny_config, pretraining_data(0), **settings)
    assert difference(plain, compiled) < 1e-5
    assert int(outcome.num_bad) == 0


@pytest.mark.usefixtures("eager")
def test_dropout_differs_between_micro_batches(tiny_config, pretraining_data):
    config = tiny_config.replace(hidden_dropout_prob=0.5)
    one, _ = after(config, pretraining_data(0))
    again, _ = after(config, pretraining_data(0))
    parts, _ = after(config, pretraining_data(0), num_micro_batches=2)
    assert difference(one, again) == 0.0
    assert difference(one, parts) > 1e-4


@pytest.mark.fast_layers
@pytest.mark.parametrize("on_two_devices", [False, pytest.param(True, marks=pytest.mark.table)])
def test_float16_scales_the_loss(tiny_config, pretraining_data, two_devices, on_two_devices):
    """From a scale that overflows at first: such updates are left out, and it is halved."""
    strategy = two_devices if on_two_devices else ONE_DEVICE
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        with strategy.scope():
            model, optimizer = AlbertPretrainer(tiny_config), LAMB(0.02)
            optimizer.build(model.trainable_variables)
            scaled = keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale=2.0**24)
        before = model.get_weights()
        stepper = Stepper(PretrainingObjective(model), scaled, strategy)
        outcome = stepper.train(iter(stepper.distribute(pretraining_data(0))), tf.constant(16))
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert stepper.loss_scaling is scaled and 1 < float(scaled.loss_scale) < 2.0**24
    assert int(outcome.num_bad) == 0
    assert all(np.isfinite(value) for value in outcome.metrics.values())
    for new, old in zip(model.get_weights(), before):
        assert np.isfinite(new).all() and (new != old).any()


def test_updates_are_described(tiny_config, fast_choice):
    """Norms of the moves of each variable, and of all."""
    fast_choice("off")
    model, optimizer = AlbertPretrainer(tiny_config), LAMB(1e-4)
    stepper = Stepper(PretrainingObjective(model), optimizer, ONE_DEVICE)
    optimizer.build(model.trainable_variables)
    before = model.get_weights()
    pairs = [(tf.ones_like(variable), variable) for variable in model.trainable_variables]
    optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
    figures = stepper.describe_updates()
    moves = [np.linalg.norm(new - old) for new, old in zip(model.get_weights(), before)]
    assert float(figures["update"]["norm"]) == pytest.approx(np.linalg.norm(moves), rel=1e-2)
    assert len(figures["update_norm"]) == len(figures["trust_ratio"]) == len(moves)


def test_dropout_is_a_function_of_seed_step_and_replica():
    """The one of earlier versions: a run that is continued draws what it would have drawn."""
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.iterations.assign(3)
    stepper = Stepper(None, optimizer, ONE_DEVICE, seed=5)
    fold_in = tf.random.experimental.stateless_fold_in
    expected = fold_in(fold_in(tf.constant([5, 0]), 3), 1)
    context = SimpleNamespace(replica_id_in_sync_group=1)
    np.testing.assert_array_equal(stepper._dropout_seed(context), expected)
