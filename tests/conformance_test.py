"""Every architecture and every task model, held against the same list of properties.

A new public model or a new kind of architecture adds a row to a table here, and gets all tests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.losses import Ratio
from albert_tf.optimization import LAMB, AdamW
from albert_tf.tasks import (
    ClassificationTask,
    PretrainingTask,
    SpanTask,
    SpanTaskV2,
    TokenClassificationTask,
    total_loss,
)

BATCH, LENGTH, CLASSES = 4, 10, 3

BASE = AlbertConfig(
    vocab_size=40,
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=12,
)
SHALLOW = BASE.replace(num_hidden_layers=2)  # Where graphs are made again and again.

# Name -> (configuration, number of attention blocks, number of feed-forward blocks).
CONFIGS = {
    "all shared": (BASE, 1, 1),
    "attention shared": (BASE.replace(parameter_sharing="attention"), 1, 4),
    "ffn shared": (BASE.replace(parameter_sharing="ffn"), 4, 1),
    "none shared": (BASE.replace(parameter_sharing="none"), 4, 4),
    "two groups of two": (BASE.replace(num_hidden_groups=2, inner_group_num=2), 4, 4),
    "embedding as wide as hidden": (BASE.replace(embedding_size=16), 1, 1),
    "relu and dropout": (
        BASE.replace(hidden_act="relu", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1),
        1,
        1,
    ),
}


@dataclasses.dataclass(frozen=True)
class Model:
    """A public model: how to make it, and a task that trains it.

    Attributes:
      num_head_variables: beside the encoder's.
      untrained: start of the names of variables that its loss does not reach.
    """

    make: Callable[..., keras.Model]
    task: Callable[[keras.Model], Any]
    num_head_variables: int
    untrained: str = "-"


class OutputsTask:
    """The mean square of a model's outputs, for models that no loss of their own trains."""

    losses = metrics = ("square",)

    def __init__(self, model: keras.Model) -> None:
        self.model = model

    def ratios(self, batch, training, seed=None):
        outputs = self.model(batch, training=training, seed=seed)
        first = outputs.get("sequence_output", outputs.get("mean_output"))
        total = tf.reduce_sum((tf.cast(first, tf.float32) - 0.3) ** 2)
        total += tf.reduce_sum(tf.cast(outputs["pooled_output"], tf.float32) ** 2)
        return {"square": Ratio(total, tf.constant(float(BATCH * LENGTH)))}


def classes(model: Callable[..., keras.Model]) -> Callable[..., keras.Model]:
    return lambda config, **arguments: model(config, CLASSES, **arguments)


def beam(config: AlbertConfig, **arguments: Any) -> keras.Model:
    return albert_tf.AlbertSpanLabelerV2(config, start_n_top=2, end_n_top=3, **arguments)


MODELS = {
    albert_tf.AlbertEncoder: Model(albert_tf.AlbertEncoder, OutputsTask, 0),
    albert_tf.AlbertPretrainer: Model(albert_tf.AlbertPretrainer, PretrainingTask, 7),
    albert_tf.AlbertClassifier: Model(classes(albert_tf.AlbertClassifier), ClassificationTask, 2),
    albert_tf.AlbertTokenClassifier: Model(
        classes(albert_tf.AlbertTokenClassifier), TokenClassificationTask, 2, "encoder/pooler"
    ),
    albert_tf.AlbertMultipleChoice: Model(albert_tf.AlbertMultipleChoice, ClassificationTask, 2),
    albert_tf.AlbertSpanLabeler: Model(albert_tf.AlbertSpanLabeler, SpanTask, 2, "encoder/pooler"),
    albert_tf.AlbertSpanLabelerV2: Model(beam, SpanTaskV2, 11, "encoder/pooler"),
    albert_tf.AlbertSentenceEncoder: Model(albert_tf.AlbertSentenceEncoder, OutputsTask, 0),
}

every_config = pytest.mark.parametrize("config_name", CONFIGS)
every_model = pytest.mark.parametrize("model_class", MODELS, ids=lambda model: model.__name__)
# All configurations with one model, and all models with one configuration.
every_config_or_model = pytest.mark.parametrize(
    ("config_name", "model_class"),
    [(name, albert_tf.AlbertPretrainer) for name in CONFIGS]
    + [("all shared", model) for model in MODELS if model is not albert_tf.AlbertPretrainer],
)


def make_batch(model_class: type | None = None) -> dict[str, tf.Tensor]:
    """Inputs and labels of every task; rows of 10, 7, 3 and 1 real tokens."""
    rng = np.random.default_rng(1)
    lengths = np.array([LENGTH, 7, 3, 1])[:, None]
    arrays = {
        "input_word_ids": rng.integers(0, 40, [BATCH, LENGTH]),
        "input_mask": np.arange(LENGTH)[None] < lengths,
        "input_type_ids": rng.integers(0, 2, [BATCH, LENGTH]),
        "masked_lm_positions": np.zeros([BATCH, 2]),
        "masked_lm_ids": rng.integers(0, 40, [BATCH, 2]),
        "sentence_order_labels": [0, 1, 1, 0],
        "label_ids": [0, 1, 2, 0],
        "token_label_ids": rng.integers(0, CLASSES, [BATCH, LENGTH]),
        "impossible_positions": np.arange(LENGTH)[None] >= lengths,
        "start_positions": [4, 2, 1, 0],
        "end_positions": [6, 2, 2, 0],
        "is_impossible": [0, 0, 1, 1],
    }
    batch = {name: tf.constant(np.asarray(values), tf.int32) for name, values in arrays.items()}
    batch["masked_lm_weights"] = tf.ones([BATCH, 2])
    batch["token_weights"] = tf.cast(batch["input_mask"], tf.float32)
    batch["example_weights"] = tf.ones([BATCH])
    if model_class is albert_tf.AlbertMultipleChoice:
        for name in INPUTS:  # Three choices: the rows shifted by one, two and three.
            batch[name] = tf.stack([tf.roll(batch[name], shift, 0) for shift in (1, 2, 3)], axis=1)
    return batch


INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


def floats(outputs: Any) -> list[np.ndarray]:
    """Every output of a model."""
    return [tensor.numpy() for tensor in tf.nest.flatten(outputs)]


def test_every_public_model_is_in_the_table():
    public = [getattr(albert_tf, name) for name in albert_tf.__all__]
    models = {
        thing for thing in public if isinstance(thing, type) and issubclass(thing, keras.Model)
    }
    assert models == set(MODELS)


@every_config
@every_model
def test_variables(config_name, model_class):
    config, attention_blocks, ffn_blocks = CONFIGS[config_name]
    model = MODELS[model_class].make(config)
    projection = 0 if config.embedding_size == config.hidden_size else 2
    expected = (
        5
        + projection
        + 10 * attention_blocks
        + 6 * ffn_blocks
        + 2
        + MODELS[model_class].num_head_variables
    )
    names = [variable.name for variable in model.trainable_variables]
    assert len(names) == len(set(names)) == len(model.variables) == expected


def gradients(model_class: type, model: keras.Model, batch: dict[str, tf.Tensor], **arguments):
    """Of the model's own loss, by variable; dense, None where the loss does not reach."""
    task = MODELS[model_class].task(model)
    with tf.GradientTape() as tape:
        loss = total_loss(task, task.ratios(batch, **arguments))
    found = tape.gradient(loss, model.trainable_variables)
    return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]


@every_config_or_model
def test_training_lowers_the_loss_and_moves_every_variable(config_name, model_class):
    model = MODELS[model_class].make(CONFIGS[config_name][0])
    batch, optimizer = make_batch(model_class), AdamW(0.003)
    before = [variable.numpy() for variable in model.trainable_variables]

    @tf.function
    def step(seed):
        loss, found = gradients(model_class, model, batch, training=True, seed=seed)
        reached = [pair for pair in zip(found, model.trainable_variables) if pair[0] is not None]
        optimizer.apply_gradients(reached)
        return loss

    optimizer.build(model.trainable_variables)
    losses = [float(step(tf.constant([0, index]))) for index in range(14)]
    assert np.mean(losses[-2:]) < 0.98 * np.mean(losses[:2])
    for old, variable in zip(before, model.trainable_variables):
        moved = np.abs(old - variable.numpy()).max() > 0
        assert moved != variable.name.startswith(MODELS[model_class].untrained), variable.name


@every_config_or_model
def test_save_and_restore(config_name, model_class, tmp_path):
    model = MODELS[model_class].make(CONFIGS[config_name][0])
    native.save(model, str(tmp_path / "model"), {})
    copy = native.load_model(str(tmp_path / "model"))
    assert copy.get_config() == model.get_config()
    batch = make_batch(model_class)
    for left, right in zip(floats(model(batch)), floats(copy(batch))):
        np.testing.assert_array_equal(left, right)


@every_config_or_model
def test_packed_execution_equals_padded(config_name, model_class):
    batch, config = make_batch(model_class), CONFIGS[config_name][0]
    padded, packed = (MODELS[model_class].make(config, packed=packed) for packed in (False, True))
    packed.set_weights(padded.get_weights())
    batch = {name: value for name, value in batch.items() if name != "start_positions"}
    outputs = zip(named_outputs(padded(batch)), named_outputs(packed(batch)))
    for (name, left), (_, right) in outputs:
        left, right = (at_real_tokens(value, batch) for value in (left, right))
        if name.endswith("top_index"):  # The last row has one position to choose from.
            left, right = left[:-1], right[:-1]
        np.testing.assert_allclose(left, right, atol=1e-5, rtol=1e-5, err_msg=name)
    if MODELS[model_class].task is OutputsTask:  # Its loss looks at padding.
        return
    batch = make_batch(model_class)
    (_, left), (_, right) = (
        gradients(model_class, model, batch, training=False) for model in (padded, packed)
    )
    for one, other in zip(left, right):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, atol=1e-5)


def at_real_tokens(value: tf.Tensor, batch: dict[str, tf.Tensor]) -> np.ndarray:
    """The value where it is defined: outputs for each token have none at padding."""
    mask = batch["input_mask"].numpy()
    shape = value.shape.as_list()
    if shape[: mask.ndim] != list(mask.shape):
        return value.numpy()
    real = mask.reshape([*mask.shape, *[1] * (len(shape) - mask.ndim)])
    return value.numpy() * real.astype(value.numpy().dtype)


@every_model
def test_recomputation_changes_nothing(model_class):
    config = BASE.replace(hidden_dropout_prob=0.1)
    batch, seed = make_batch(model_class), tf.constant([3, 4])
    plain, frugal = (
        MODELS[model_class].make(config.replace(recompute=recompute)) for recompute in (False, True)
    )
    frugal.set_weights(plain.get_weights())
    (_, left), (_, right) = (
        gradients(model_class, model, batch, training=True, seed=seed) for model in (plain, frugal)
    )
    for one, other in zip(left, right):
        if one is not None:
            np.testing.assert_allclose(one, other, atol=1e-5)  # Sums in another order.
    gradients(model_class, frugal, batch, training=True)  # Draws its own seed.


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@every_model
def test_mixed_precision_is_close_and_answers_in_float32(model_class, policy):
    batch, model = make_batch(model_class), MODELS[model_class].make(BASE)
    keras.mixed_precision.set_global_policy(policy)
    try:
        mixed = MODELS[model_class].make(BASE)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    mixed.set_weights(model.get_weights())
    for (name, left), (_, right) in zip(named_outputs(model(batch)), named_outputs(mixed(batch))):
        left, right = (at_real_tokens(value, batch) for value in (left, right))
        np.testing.assert_allclose(left, right.astype(np.float32), atol=0.15, err_msg=name)
        assert right.dtype == np.float32 or not name.endswith(("logits", "log_probs"))
    assert all(variable.dtype == tf.float32 for variable in mixed.variables)
    _, found = gradients(model_class, mixed, batch, training=True)
    for variable, gradient in zip(mixed.trainable_variables, found):
        if gradient is not None:
            assert gradient.dtype == tf.float32
            assert np.isfinite(gradient).all(), variable.name


def named_outputs(outputs: Any) -> list[tuple[str, tf.Tensor]]:
    """Outputs by name, those of every layer one by one."""
    if not isinstance(outputs, dict):
        return [("logits", outputs)]
    return [(name, value) for name in sorted(outputs) for value in tf.nest.flatten(outputs[name])]


@every_model
def test_xla_compiles_answers_and_a_training_step(model_class):
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
        for left, right in zip(found, expected):
            np.testing.assert_allclose(left, right, atol=1e-5)


@every_model
def test_varying_shapes_are_traced_once(model_class):
    model, batch = MODELS[model_class].make(BASE), make_batch(model_class)
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
        for left, right in zip(floats(model(smaller)), floats(function(smaller))):
            np.testing.assert_allclose(left, right, atol=1e-5)
    assert function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("replicas", [1, 2])
@every_model
def test_keras_own_fit_predict_and_save(model_class, replicas, two_devices, tmp_path):
    strategy = two_devices if replicas == 2 else tf.distribute.get_strategy()
    inputs = make_batch(model_class)
    with strategy.scope():
        model = MODELS[model_class].make(SHALLOW)
        model.compile(optimizer=AdamW(1e-3), loss=lambda _, output: tf.reduce_mean(output**2))
    targets = tf.nest.map_structure(tf.zeros_like, model(inputs))
    history = model.fit(inputs, targets, batch_size=BATCH, epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]
    predicted = model.predict(inputs, batch_size=BATCH, verbose=0)
    for left, right in zip(tf.nest.flatten(predicted), floats(model(inputs))):
        np.testing.assert_allclose(left, right, atol=1e-5)
    if replicas == 1:
        for path in (tmp_path / "saved_model", tmp_path / "model.keras"):
            model.save(path)
            loaded = keras.models.load_model(path, compile=False)
            for left, right in zip(floats(model(inputs)), floats(loaded(inputs))):
                np.testing.assert_allclose(left, right, atol=1e-5)


@pytest.mark.parametrize("optimizer_class", [AdamW, LAMB])
def test_fit_scales_the_loss_in_float16(optimizer_class):
    batch = make_batch()
    inputs = {name: batch[name] for name in INPUTS}
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = albert_tf.AlbertClassifier(BASE, CLASSES, dropout_rate=0.0)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=optimizer_class(1e-3), loss=loss)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    losses = model.fit(inputs, batch["label_ids"], epochs=12, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert isinstance(model.optimizer, keras.mixed_precision.LossScaleOptimizer)
    assert float(model.optimizer.loss_scale) > 1  # Nothing overflowed for long.
    assert model.train_tf_function.experimental_get_tracing_count() == 1


@every_model
def test_dropout_acts_in_training_only_and_follows_its_seed(model_class):
    model = MODELS[model_class].make(CONFIGS["relu and dropout"][0])
    batch = make_batch(model_class)

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


@pytest.mark.parametrize("packed", [False, True])
@every_model
def test_padding_changes_nothing(model_class, packed):
    """Positions behind the mask, whatever they hold, and longer rows leave the answers alone."""
    model, batch = MODELS[model_class].make(BASE, packed=packed), make_batch(model_class)
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
            if value.shape[:2] in ([BATCH, LENGTH], [BATCH, LENGTH + 2]):
                real = tf.cast(mask, tf.float32)
                value, before = value[:, :LENGTH], expected[name]
                if value.shape.rank == 3:
                    real = real[..., None]
                if name != "encoder_outputs":
                    np.testing.assert_allclose(value * real, before * real, atol=1e-5)
            else:
                np.testing.assert_allclose(value, expected[name], atol=1e-5)


def test_a_sequence_longer_than_the_positions():
    model = albert_tf.AlbertEncoder(BASE)
    ids = tf.zeros([1, 13], tf.int32)
    with pytest.raises(
        ValueError, match="sequence length 13 is longer than the model's 12 positions"
    ):
        model({"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids})
