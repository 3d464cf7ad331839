"""Every architecture and every task model, held against the same list of properties.

The tables are in conformance_cases.py; what Keras expects of a model is in
keras_conformance_test.py and keras_compiled_test.py.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.checkpoints import native
from albert_tf.keras_compat import keras
from albert_tf.models import ReplacedTokenPretrainer
from albert_tf.models.objectives import total_loss
from albert_tf.optimization import AdamW
from tests.conformance_cases import (
    BASE,
    BATCH,
    CONFIGS,
    LENGTH,
    MODELS,
    SHALLOW,
    TRAININGS,
    OutputsTask,
    assert_equal,
    every_config,
    every_config_or_model,
    every_config_or_training,
    every_model,
    every_training,
    floats,
    global_policy,
    make_batch,
)


def test_every_public_model_is_in_the_table():
    public = [getattr(albert_tf, name) for name in albert_tf.__all__]
    models = {
        thing for thing in public if isinstance(thing, type) and issubclass(thing, keras.Model)
    }
    assert models and models <= set(MODELS)


@every_config
@every_model
def test_variables(config_name, model_class):
    config, attention_blocks, ffn_blocks = CONFIGS[config_name]
    model = MODELS[model_class].make(config)
    projection = 0 if config.embedding_size == config.hidden_size else 2
    is_untied = (
        issubclass(model_class, albert_tf.AlbertPretrainer) and not config.tie_word_embeddings
    )
    expected = 5 + projection + 10 * attention_blocks + 6 * ffn_blocks + 2
    expected += MODELS[model_class].num_head_variables + is_untied
    names = [variable.name for variable in model.trainable_variables]
    assert len(names) == len(set(names)) == len(model.variables) == expected


def gradients(kind: type, model: keras.Model, batch: dict[str, tf.Tensor], **arguments):
    """Of the model's own loss, by variable; dense, None where the loss does not reach."""
    task = TRAININGS[kind].task(model)
    with tf.GradientTape() as tape:
        loss = total_loss(task, task.ratios(batch, **arguments))
    found = tape.gradient(loss, model.trainable_variables)
    return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]


@every_config_or_training
def test_training_lowers_the_loss_and_moves_every_variable(config_name, kind):
    model = TRAININGS[kind].make(CONFIGS[config_name][0])
    batch, optimizer = make_batch(kind), AdamW(0.003)
    before = [variable.numpy() for variable in model.trainable_variables]

    @tf.function
    def step(seed):
        loss, found = gradients(kind, model, batch, training=True, seed=seed)
        reached = [pair for pair in zip(found, model.trainable_variables) if pair[0] is not None]
        optimizer.apply_gradients(reached)
        return loss

    optimizer.build(model.trainable_variables)
    losses = [float(step(tf.constant([0, index]))) for index in range(14)]
    assert np.mean(losses[-2:]) < 0.98 * np.mean(losses[:2])
    parts = [operator.attrgetter(path)(model) for path in TRAININGS[kind].untrained]
    untrained = {id(variable) for part in parts for variable in part.trainable_variables}
    for old, variable in zip(before, model.trainable_variables):
        moved = np.abs(old - variable.numpy()).max() > 0
        assert moved != (id(variable) in untrained), variable.name


@every_config_or_model
def test_save_and_restore(config_name, model_class, tmp_path):
    model = MODELS[model_class].make(CONFIGS[config_name][0])
    native.save(model, str(tmp_path / "model"), {})
    copy = native.load_model(str(tmp_path / "model"))
    assert copy.get_config() == model.get_config()
    batch = make_batch(model_class)
    assert_equal(model(batch), copy(batch))


@every_model
def test_inputs_of_other_types_and_inputs_left_out(model_class):
    model, batch = MODELS[model_class].make(SHALLOW), make_batch(model_class)
    batch["input_type_ids"] = tf.zeros_like(batch["input_type_ids"])
    expected = floats(model(batch))
    ids, mask = batch["input_word_ids"], batch["input_mask"]
    numbers = {"input_word_ids": tf.cast(ids, tf.int64), "input_mask": tf.cast(mask, tf.bool)}
    lists = {"input_word_ids": ids.numpy().tolist(), "input_mask": mask.numpy().tolist()}
    for given in (numbers, lists):
        untyped = {name: each for name, each in batch.items() if name != "input_type_ids"}
        for other in (batch | given, untyped | given):
            assert_equal(model(other), expected)
    without_mask = {name: each for name, each in batch.items() if name != "input_mask"}
    all_real = batch | {"input_mask": tf.ones_like(mask)}
    assert_equal(model(without_mask), model(all_real))
    wrong = "(?s)Expected a dict with input_word_ids.*received input_word_ids of float32"
    with pytest.raises(ValueError, match=wrong):
        model({**batch, "input_word_ids": tf.cast(ids, tf.float32)})


@pytest.mark.fast_layers
@pytest.mark.one_stack
@every_config_or_training
def test_packed_execution_equals_padded(config_name, kind):
    batch, config = make_batch(kind), CONFIGS[config_name][0]
    padded, packed = (TRAININGS[kind].make(config, packed=packed) for packed in (False, True))
    packed.set_weights(padded.get_weights())
    batch = {name: value for name, value in batch.items() if name != "start_positions"}
    outputs = zip(named_outputs(padded(batch)), named_outputs(packed(batch)))
    for (name, left), (_, right) in outputs:
        left, right = (at_real_tokens(value, batch) for value in (left, right))
        if name.endswith("top_index"):  # The last row has one position to choose from.
            left, right = left[:-1], right[:-1]
        np.testing.assert_allclose(left, right, atol=1e-5, rtol=1e-5, err_msg=name)
    if TRAININGS[kind].task is OutputsTask:  # Its loss looks at padding.
        return
    batch = make_batch(kind)
    (_, left), (_, right) = (
        gradients(kind, model, batch, training=False) for model in (padded, packed)
    )
    for one, other in zip(left, right):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-5)


def at_real_tokens(value: tf.Tensor, batch: dict[str, tf.Tensor]) -> np.ndarray:
    """The value where it is defined: outputs for each token have none at padding."""
    mask = batch["input_mask"].numpy()
    shape = value.shape.as_list()
    if shape[: mask.ndim] != list(mask.shape):
        return value.numpy()
    real = mask.reshape([*mask.shape, *[1] * (len(shape) - mask.ndim)])
    return value.numpy() * real.astype(value.numpy().dtype)


@pytest.mark.one_stack
@every_training
def test_gradients_equal_differences(kind):
    """Of each variable, along its gradient and a step aside, which an error would tilt."""
    model, batch = TRAININGS[kind].make(BASE), make_batch(kind)
    task, how = TRAININGS[kind].task(model), {"training": True, "seed": tf.constant([3, 4])}
    loss = tf.function(lambda: total_loss(task, task.ratios(batch, **how)))
    _, found = gradients(kind, model, batch, **how)
    rng = np.random.default_rng(0)
    # A generator that has moved further samples other words.
    size = 0.0005 if kind is ReplacedTokenPretrainer else 0.01
    for variable, gradient in zip(model.trainable_variables, found):
        if gradient is None:
            continue
        value, slope = variable.numpy(), gradient.numpy()
        length = np.linalg.norm(slope)
        aside = rng.standard_normal(slope.shape)
        direction = slope / max(length, 1e-6) + 0.5 * aside / np.linalg.norm(aside)
        losses = {}
        for step in (-2, -1, 1, 2):
            variable.assign(value + size * step * direction)
            losses[step] = float(loss())
        variable.assign(value)
        # Of fourth order, so that the curve of the loss is not taken for an error.
        difference = (8 * (losses[1] - losses[-1]) - (losses[2] - losses[-2])) / (12 * size)
        expected = float(np.sum(slope * direction))
        rounding = 2e-7 * max(1.0, losses[1]) / size
        assert abs(difference - expected) < 0.01 * length + rounding, variable.name


@pytest.mark.fast_layers
@pytest.mark.one_stack
@every_training
def test_recomputation_changes_nothing(kind):
    config = BASE.replace(hidden_dropout_prob=0.1)
    batch, seed = make_batch(kind), tf.constant([3, 4])
    plain, frugal = (
        TRAININGS[kind].make(config.replace(recompute=recompute)) for recompute in (False, True)
    )
    frugal.set_weights(plain.get_weights())
    (_, left), (_, right) = (
        gradients(kind, model, batch, training=True, seed=seed) for model in (plain, frugal)
    )
    for one, other in zip(left, right):
        if one is not None:
            np.testing.assert_allclose(one, other, atol=1e-5)  # Sums in another order.
    gradients(kind, frugal, batch, training=True)  # Draws its own seed.


@pytest.mark.fast_layers
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@every_training
def test_mixed_precision_is_close_and_answers_in_float32(kind, policy):
    batch, model = make_batch(kind), TRAININGS[kind].make(BASE)
    with global_policy(policy):
        mixed = TRAININGS[kind].make(BASE)
    mixed.set_weights(model.get_weights())
    for (name, left), (_, right) in zip(named_outputs(model(batch)), named_outputs(mixed(batch))):
        left, right = (at_real_tokens(value, batch) for value in (left, right))
        np.testing.assert_allclose(left, right.astype(np.float32), atol=0.15, err_msg=name)
        assert right.dtype == np.float32 or not name.endswith(("logits", "log_probs"))
    assert all(variable.dtype == tf.float32 for variable in mixed.variables)
    _, found = gradients(kind, mixed, batch, training=True)
    for variable, gradient in zip(mixed.trainable_variables, found):
        if gradient is not None:
            assert gradient.dtype == tf.float32
            assert np.isfinite(gradient).all(), variable.name


def named_outputs(outputs: Any) -> list[tuple[str, tf.Tensor]]:
    """Outputs by name, those of every layer one by one."""
    if not isinstance(outputs, dict):
        return [("logits", outputs)]
    return [(name, value) for name in sorted(outputs) for value in tf.nest.flatten(outputs[name])]


@pytest.mark.fast_layers
@every_model
def test_xla_compiles_answers_and_a_training_step(model_class):
    """Of the pair of generator and detector: replaced_tokens_test.py."""
    model, batch = MODELS[model_class].make(SHALLOW), make_batch(model_class)
    compiled = tf.function(model.call, jit_compile=True)
    for left, right in zip(floats(model(batch)), floats(compiled(batch))):
        if left.shape[:2] == (BATCH, LENGTH):  # Padding is computed under XLA only.
            continue
        np.testing.assert_allclose(left, right, atol=1e-5)

    @tf.function(jit_compile=True)
    def step():
        loss, found = gradients(model_class, model, batch, training=False)
        return loss, [gradient for gradient in found if gradient is not None]

    loss, found = step()
    expected_loss, expected = gradients(model_class, model, batch, training=False)
    if MODELS[model_class].task is not OutputsTask:  # Its loss looks at padding.
        np.testing.assert_allclose(loss, expected_loss, atol=1e-5)
        expected = [gradient for gradient in expected if gradient is not None]
        assert_equal(found, expected, atol=1e-5)


@pytest.mark.fast_layers
@pytest.mark.one_stack
@every_training
def test_varying_shapes_are_traced_once(kind):
    model, batch = TRAININGS[kind].make(BASE), make_batch(kind)
    batch = {name: value for name, value in batch.items() if name != "start_positions"}
    signature = {
        name: tf.TensorSpec([None] * value.shape.rank, value.dtype) for name, value in batch.items()
    }
    function = tf.function(model.call, input_signature=[signature])
    for size, length in ((4, 10), (3, 7), (1, 5)):
        smaller = {
            name: value[:size, ..., :length] if value.shape[-1] == LENGTH else value[:size]
            for name, value in batch.items()
        }
        assert_equal(model(smaller), function(smaller), atol=1e-5)
    assert function.experimental_get_tracing_count() == 1


@pytest.mark.one_stack
@every_training
def test_dropout_acts_in_training_only_and_follows_its_seed(kind):
    model = TRAININGS[kind].make(CONFIGS["relu and dropout"][0])
    batch = make_batch(kind)

    def outputs(**arguments):
        return np.concatenate([value.ravel() for value in floats(model(batch, **arguments))])

    seed, other = tf.constant([1, 2]), tf.constant([1, 3])
    np.testing.assert_array_equal(outputs(), outputs(seed=seed))
    np.testing.assert_array_equal(
        outputs(training=True, seed=seed), outputs(training=True, seed=seed)
    )
    assert not np.array_equal(outputs(training=True, seed=seed), outputs(training=True, seed=other))
    assert not np.array_equal(outputs(training=True), outputs(training=True))
    assert not np.array_equal(outputs(), outputs(training=True, seed=seed))


@pytest.mark.one_stack
@pytest.mark.parametrize("packed", [False, True])
@every_training
def test_padding_changes_nothing(kind, packed):
    """Positions behind the mask, whatever they hold, and longer rows leave the answers alone."""
    model, batch = TRAININGS[kind].make(BASE, packed=packed), make_batch(kind)
    mask = batch["input_mask"]
    scrambled = {**batch, "input_word_ids": tf.where(mask == 1, batch["input_word_ids"], 39)}
    longer = {
        name: tf.pad(value, [[0, 0]] * (value.shape.rank - 1) + [[0, 2]])
        for name, value in batch.items()
        if value.shape[-1] == LENGTH
    }
    longer["impossible_positions"] = tf.pad(
        batch["impossible_positions"], [[0, 0], [0, 2]], constant_values=1
    )
    expected = dict(named_outputs(model(batch)))
    for other in (scrambled, {**batch, **longer}):
        for name, value in named_outputs(model(other)):
            if name == "encoder_outputs":  # Of every layer; the last one is sequence_output.
                continue
            if value.shape[:2] == [BATCH, LENGTH + 2]:
                value = value[:, :LENGTH]
            left, right = (at_real_tokens(each, batch) for each in (value, expected[name]))
            np.testing.assert_allclose(left, right, atol=1e-5)
