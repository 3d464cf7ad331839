"""Replaced tokens: what is drawn, what counts as replaced, the loss, and what learns from it."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from albert_tf.models import ReplacedTokenPretrainer
from albert_tf.models.objectives import ReplacedTokensObjective
from albert_tf.models.replaced_tokens import draw, generator_config, put_at
from albert_tf.training.steps import Stepper
from albert_tf.variable_names import variable_name
from tests.conformance_cases import assert_equal
from tests.conftest import BATCH, PREDICTIONS, pretraining_batch


def make_batch(step: int = 0) -> dict[str, tf.Tensor]:
    """A batch of made-up data whose predictions are at different positions."""
    batch = pretraining_batch(step)
    positions = tf.tile(tf.range(1, 1 + PREDICTIONS)[tf.newaxis], [BATCH, 1])
    noise = tf.random.stateless_uniform([BATCH, PREDICTIONS], [step, 3])
    return {**batch, "masked_lm_positions": positions, "sampling_noise": noise}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_words_are_drawn_from_the_distribution(temperature):
    """Chi square, at a threshold that one seed of a thousand would cross."""
    count, logits = 20_000, np.array([1.0, -1.0, 0.0, 2.0, 0.5], np.float32)
    noise = tf.random.stateless_uniform([1, count], [1, 2])
    drawn = draw(tf.tile(logits[None, None], [1, count, 1]), noise, temperature)
    expected = np.exp(logits.astype(np.float64) / temperature)
    expected *= count / expected.sum()
    found = np.bincount(drawn.numpy()[0], minlength=5)
    assert scipy.stats.chisquare(found, expected).pvalue > 0.001


def test_noise_stays_float32_in_mixed_precision(tiny_config):
    """Keras would round it to bfloat16, in which numbers just below 1 are 1 and draw no word."""
    model = ReplacedTokenPretrainer(tiny_config, dtype="mixed_bfloat16")
    batch = make_batch()
    noise = tf.fill(batch["sampling_noise"].shape, np.nextafter(np.float32(1), np.float32(0)))
    found = model({**batch, "sampling_noise": noise}, training=True)
    assert found["masked_lm_logits"].dtype == found["replaced_logits"].dtype == tf.float32
    assert found["is_replaced"].dtype == tf.bool
    assert model.detector.encoder.compute_dtype == "bfloat16"


@pytest.mark.parametrize("noise", [0.0, 0.5, np.nextafter(np.float32(1), np.float32(0))])
def test_the_ends_of_the_noise_are_words(noise):
    logits = tf.random.stateless_normal([2, 3, 30_000], [1, 2])
    drawn = draw(logits, tf.fill([2, 3], noise), 1.0).numpy()
    assert (drawn >= 0).all() and (drawn < 30_000).all()


def test_words_are_put_where_they_have_a_weight():
    ids = tf.constant([[1, 2, 3, 4], [5, 6, 7, 8]])
    positions, words = tf.constant([[2, 0], [1, 3]]), tf.constant([[30, 10], [60, 80]])
    found = put_at(ids, positions, words, tf.constant([[1.0, 0.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(found, [[1, 2, 30, 4], [5, 60, 7, 80]])


def test_the_generator_is_smaller_and_shares_the_tables(tiny_config):
    config = generator_config(tiny_config.replace(num_attention_heads=8, intermediate_size=64), 0.3)
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == (4, 2, 16)
    model = ReplacedTokenPretrainer(tiny_config)
    assert model.generator.config.hidden_size == 8
    ours, theirs = model.generator.encoder.embeddings, model.detector.encoder.embeddings
    for table in ("word_embeddings", "token_type_embeddings", "position_embeddings"):
        assert getattr(ours, table) is getattr(theirs, table)
    tables = [each for each in model.trainable_variables if "_embeddings" in variable_name(each)]
    assert len(tables) == 3
    again = ReplacedTokenPretrainer.from_config(model.get_config())
    assert [each.shape for each in again.variables] == [each.shape for each in model.variables]


def test_the_loss_is_that_of_numpy(tiny_config):
    model, batch = ReplacedTokenPretrainer(tiny_config, detection_weight=7.0), make_batch()
    task = ReplacedTokensObjective(model)
    figures = {
        name: float(ratio.numerator / ratio.denominator)
        for name, ratio in task.ratios(batch, training=False).items()
    }
    arrays = {name: values.numpy() for name, values in batch.items()}
    logits = model.generator(batch)["masked_lm_logits"].numpy()
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    original, corrupted = arrays["input_word_ids"].copy(), arrays["input_word_ids"].copy()
    for row in range(BATCH):
        for place, position in enumerate(arrays["masked_lm_positions"][row]):
            if arrays["masked_lm_weights"][row, place]:
                original[row, position] = arrays["masked_lm_ids"][row, place]
                reached = np.cumsum(probabilities[row, place])
                word = np.searchsorted(reached, arrays["sampling_noise"][row, place])
                corrupted[row, position] = word
    labels, real = corrupted != original, arrays["input_mask"].astype(bool)
    detected = model.detector({**batch, "input_word_ids": tf.constant(corrupted)})
    truth = sigmoid(detected["replaced_logits"].numpy())
    losses = -np.where(labels, np.log(truth), np.log(1 - truth))
    assert labels[real].any() and not labels[real].all()
    assert figures["detection_loss"] == pytest.approx(losses[real].mean(), abs=1e-5)
    assert figures["weighted_detection_loss"] == pytest.approx(7 * losses[real].mean(), abs=1e-4)
    assert figures["replaced_share"] == pytest.approx(labels[real].mean(), abs=1e-6)
    said = truth > 0.5
    assert figures["detection_accuracy"] == pytest.approx((said == labels)[real].mean(), abs=1e-6)
    order = detected["sentence_order_logits"].numpy()
    order -= np.log(np.exp(order).sum(axis=-1, keepdims=True))
    expected = -order[np.arange(BATCH), arrays["sentence_order_labels"]].mean()
    assert figures["sentence_order_loss"] == pytest.approx(expected, abs=1e-5)


def test_a_word_drawn_right_counts_as_original(tiny_config):
    """A generator that is sure of the truth replaces nothing."""
    model, batch = ReplacedTokenPretrainer(tiny_config), make_batch()
    bias = np.full(50, -50.0, np.float32)
    bias[17] = 50.0
    model.generator.masked_lm.output_bias.assign(bias)
    sure = {**batch, "masked_lm_ids": tf.fill([BATCH, PREDICTIONS], 17)}
    assert not model(sure)["is_replaced"].numpy().any()
    other = {**batch, "masked_lm_ids": tf.fill([BATCH, PREDICTIONS], 18)}
    np.testing.assert_array_equal(
        model(other)["is_replaced"][:, 1 : 1 + PREDICTIONS], batch["masked_lm_weights"] > 0
    )


def test_no_gradient_goes_through_what_is_drawn(tiny_config):
    """Detection teaches the generator nothing but the tables that both share."""
    model, batch = ReplacedTokenPretrainer(tiny_config), make_batch()
    with tf.GradientTape() as tape:
        loss = (
            ReplacedTokensObjective(model).ratios(batch, training=True)["detection_loss"].numerator
        )
    shared = {id(each) for each in model.detector.trainable_variables}
    variables = model.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        if id(variable) not in shared:
            assert gradient is None, variable_name(variable)
        elif variable_name(variable).startswith(("replaced/", "encoder/embeddings/")):
            assert float(tf.reduce_max(tf.abs(tf.convert_to_tensor(gradient)))) > 0


def test_order_is_a_choice(tiny_config):
    model = ReplacedTokenPretrainer(tiny_config, detector_order=False)
    for objective in ("sop", "none"):
        task = ReplacedTokensObjective(model, objective)
        assert not any("sentence" in name for name in task.metrics)
        assert set(task.ratios(make_batch(), training=False)) == set(task.metrics)
    task = ReplacedTokensObjective(ReplacedTokenPretrainer(tiny_config), "nsp")
    assert set(task.ratios(make_batch(), training=False)) == set(task.metrics)
    assert "next_sentence_loss" in task.losses


def train(config, strategy=None, jit_compile=False, num_micro_batches=1) -> list[np.ndarray]:
    """The weights after an update."""
    strategy = strategy or tf.distribute.OneDeviceStrategy("CPU:0")
    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = ReplacedTokenPretrainer(config, packed=False if jit_compile else None)
        optimizer = tf.keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)
    task = ReplacedTokensObjective(model)
    stepper = Stepper(task, optimizer, strategy, 5, num_micro_batches, jit_compile)
    data = tf.data.Dataset.from_tensors(make_batch()).repeat()
    stepper.train(iter(stepper.distribute(data)), tf.constant(1))
    return [variable.numpy() for variable in model.variables]


@pytest.mark.parametrize(
    "how",
    ["micro-batches", *(pytest.param(w, marks=pytest.mark.table) for w in ("devices", "XLA"))],
)
def test_micro_batches_devices_and_xla_change_nothing(how, tiny_config, two_devices, eagerly):
    changes = {
        "micro-batches": {"num_micro_batches": 2},
        "devices": {"strategy": two_devices},
        "XLA": {"jit_compile": True},
    }
    config = tiny_config.replace(num_hidden_layers=1)
    with eagerly() if how == "micro-batches" else contextlib.nullcontext():
        expected, found = train(config), train(config, **changes[how])
    assert_equal(expected, found, atol=1e-5)
