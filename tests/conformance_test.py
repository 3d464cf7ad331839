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
from albert_tf.optimization import AdamW
from albert_tf.tasks import ClassificationTask, PretrainingTask, total_loss

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
    """A public model: how to make it, and a task that trains it."""

    make: Callable[[AlbertConfig], keras.Model]
    task: Callable[[keras.Model], Any]
    num_head_variables: int


class EncoderTask:
    """The mean square of the encoder's outputs: enough to see that every variable learns."""

    losses = metrics = ("square",)

    def __init__(self, model: keras.Model) -> None:
        self.model = model

    def ratios(self, batch, training, seed=None):
        outputs = self.model(batch, training=training, seed=seed)
        total = tf.reduce_sum((outputs["sequence_output"] - 0.3) ** 2) + tf.reduce_sum(
            outputs["pooled_output"] ** 2
        )
        return {"square": Ratio(tf.cast(total, tf.float32), tf.constant(float(BATCH * LENGTH)))}


MODELS = {
    albert_tf.AlbertEncoder: Model(albert_tf.AlbertEncoder, EncoderTask, 0),
    albert_tf.AlbertPretrainer: Model(albert_tf.AlbertPretrainer, PretrainingTask, 7),
    albert_tf.AlbertClassifier: Model(
        lambda config: albert_tf.AlbertClassifier(config, CLASSES), ClassificationTask, 2
    ),
}

every_config = pytest.mark.parametrize("config_name", CONFIGS)
every_model = pytest.mark.parametrize("model_class", MODELS, ids=lambda model: model.__name__)


def make_batch() -> dict[str, tf.Tensor]:
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
    }
    batch = {name: tf.constant(np.asarray(values), tf.int32) for name, values in arrays.items()}
    return {**batch, "masked_lm_weights": tf.ones([BATCH, 2]), "example_weights": tf.ones([BATCH])}


def floats(outputs: Any) -> list[np.ndarray]:
    """Every float output of a model."""
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


@every_config
@every_model
def test_training_lowers_the_loss_and_moves_every_variable(config_name, model_class):
    model = MODELS[model_class].make(CONFIGS[config_name][0])
    task, batch, optimizer = MODELS[model_class].task(model), make_batch(), AdamW(0.003)
    before = [variable.numpy() for variable in model.trainable_variables]

    @tf.function
    def step(seed):
        with tf.GradientTape() as tape:
            loss = total_loss(task, task.ratios(batch, training=True, seed=seed))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        )

    optimizer.build(model.trainable_variables)
    first = total_loss(task, task.ratios(batch, training=False))
    for index in range(12):
        step(tf.constant([0, index]))
    last = total_loss(task, task.ratios(batch, training=False))
    assert float(last) < 0.98 * float(first)
    moved = [
        np.abs(old - new.numpy()).max() > 0 for old, new in zip(before, model.trainable_variables)
    ]
    assert all(moved)


@every_config
@every_model
def test_save_and_restore(config_name, model_class, tmp_path):
    model, batch = MODELS[model_class].make(CONFIGS[config_name][0]), make_batch()
    copy = model_class.from_config(model.get_config())
    if model_class is albert_tf.AlbertEncoder:
        tf.train.Checkpoint(model).write(str(tmp_path / "weights"))
        tf.train.Checkpoint(copy).read(str(tmp_path / "weights")).assert_existing_objects_matched()
    else:
        native.save(model, str(tmp_path / "model"), {})
        copy = native.load_model(str(tmp_path / "model"))
    for left, right in zip(floats(model(batch)), floats(copy(batch))):
        np.testing.assert_array_equal(left, right)


@every_model
def test_bfloat16_is_close_and_answers_in_float32(model_class):
    batch, model = make_batch(), MODELS[model_class].make(BASE)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        mixed = MODELS[model_class].make(BASE)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    mixed.set_weights(model.get_weights())
    for left, right in zip(tf.nest.flatten(model(batch)), tf.nest.flatten(mixed(batch))):
        np.testing.assert_allclose(left, tf.cast(right, tf.float32), atol=0.15)
    heads = [value for name, value in _named_outputs(mixed(batch)) if name.endswith("logits")]
    assert all(value.dtype == tf.float32 for value in heads)
    assert all(variable.dtype == tf.float32 for variable in mixed.variables)


def _named_outputs(outputs: Any) -> list[tuple[str, tf.Tensor]]:
    return list(outputs.items()) if isinstance(outputs, dict) else [("logits", outputs)]


@every_model
def test_dropout_acts_in_training_only_and_follows_its_seed(model_class):
    model, batch = MODELS[model_class].make(CONFIGS["relu and dropout"][0]), make_batch()

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


@every_model
def test_padding_changes_nothing(model_class):
    """Positions behind the mask, whatever they hold, and longer rows leave the answers alone."""
    model, batch = MODELS[model_class].make(BASE), make_batch()
    mask = batch["input_mask"]
    scrambled = {**batch, "input_word_ids": tf.where(mask == 1, batch["input_word_ids"], 39)}
    longer = {
        **batch,
        **{
            name: tf.pad(batch[name], [[0, 0], [0, 2]])
            for name in batch
            if name.startswith("input_")
        },
    }
    expected = dict(_named_outputs(model(batch)))
    for other in (scrambled, longer):
        for name, value in _named_outputs(model(other)):
            if name in ("encoder_outputs", "sequence_output"):
                continue
            np.testing.assert_allclose(value, expected[name], atol=1e-5)


def test_a_sequence_longer_than_the_positions():
    model = albert_tf.AlbertEncoder(BASE)
    ids = tf.zeros([1, 13], tf.int32)
    with pytest.raises(
        ValueError, match="sequence length 13 is longer than the model's 12 positions"
    ):
        model({"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids})
