"""The forward pass, the losses and six optimizer steps equal those of google-research/albert's own
code.
"""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import google
from albert_tf.checkpoints.bundle import our_name
from albert_tf.checkpoints.names import variable_names
from albert_tf.config import AlbertConfig
from albert_tf.models import AlbertPretrainer
from albert_tf.optimization import LAMB, AdamW, WarmupPolynomialDecay
from albert_tf.tasks import PretrainingTask, total_loss

GOLDEN = Path(__file__).parents[1] / "goldens" / "google_tiny"


def read(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / name) as file:
        return dict(file)


@pytest.fixture
def model() -> AlbertPretrainer:
    model = AlbertPretrainer(AlbertConfig.from_json_file(str(GOLDEN / "albert_config.json")))
    assert google.load(model, str(GOLDEN / "model.ckpt")) == []
    return model


@pytest.fixture(scope="module")
def batch() -> dict[str, tf.Tensor]:
    inputs = read("inputs.npz")
    return {
        "input_word_ids": tf.constant(inputs["input_ids"]),
        "input_mask": tf.constant(inputs["input_mask"]),
        "input_type_ids": tf.constant(inputs["segment_ids"]),
        "masked_lm_positions": tf.constant(inputs["masked_lm_positions"]),
        "masked_lm_ids": tf.constant(inputs["masked_lm_ids"]),
        "masked_lm_weights": tf.constant(inputs["masked_lm_weights"]),
        "sentence_order_labels": tf.constant(inputs["sentence_order_labels"][:, 0]),
        "example_weights": tf.ones([3]),
    }


def test_outputs(model, batch):
    expected, outputs = read("outputs.npz"), model(batch)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(outputs[name], expected[name], atol=1e-5, rtol=0)
    for layer, hidden in enumerate(outputs["encoder_outputs"]):
        np.testing.assert_allclose(
            hidden, expected[f"encoder_layer_{layer:02d}"], atol=1e-5, rtol=0
        )
    log_probs = tf.reshape(tf.nn.log_softmax(outputs["masked_lm_logits"]), [12, -1])
    np.testing.assert_allclose(log_probs, expected["masked_lm_log_probs"], atol=1e-5, rtol=0)
    order = tf.nn.log_softmax(outputs["sentence_order_logits"])
    np.testing.assert_allclose(order, expected["sentence_order_log_probs"], atol=1e-5, rtol=0)


def test_losses(model, batch):
    expected, task = read("outputs.npz"), PretrainingTask(model)
    ratios = task.ratios(batch, training=False)
    for name in ("masked_lm_loss", "sentence_order_loss"):
        numerator, denominator = ratios[name]
        np.testing.assert_allclose(
            numerator / (denominator + 1e-5), expected[name], atol=1e-5, rtol=0
        )
    np.testing.assert_allclose(total_loss(task, ratios), expected["total_loss"], atol=1e-5, rtol=0)


def test_gradients(model, batch):
    task = PretrainingTask(model)
    with tf.GradientTape() as tape:
        loss = total_loss(task, task.ratios(batch, training=True))
    expected, table = read("gradients.npz"), variable_names(model.config)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert len(gradients) == len(expected) == 32
    for variable, gradient in zip(model.trainable_variables, gradients):
        row = table[our_name(variable)]
        gradient = tf.convert_to_tensor(gradient).numpy()
        np.testing.assert_allclose(
            gradient.T if row.transposed else gradient, expected[row.google], atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("optimizer_class", [LAMB, AdamW])
def test_six_steps(model, batch, optimizer_class):
    expected = read(f"after_6_steps_{optimizer_class.__name__.lower()}.npz")
    schedule = WarmupPolynomialDecay(
        float(expected["learning_rate"]),
        int(expected["num_train_steps"]),
        int(expected["num_warmup_steps"]),
    )
    optimizer, task, losses = optimizer_class(schedule), PretrainingTask(model), []
    # The recorded runs read the step after it was incremented: their first update has the rate of
    # step 1, not 0.
    optimizer.iterations.assign(1)
    for step in range(7):
        with tf.GradientTape() as tape:
            loss = total_loss(task, task.ratios(batch, training=True))
        losses.append(float(loss))
        if step < 6:
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    np.testing.assert_allclose(losses, expected["losses"], atol=1e-4, rtol=0)
    table = variable_names(model.config)
    for variable in model.trainable_variables:
        row = table[our_name(variable)]
        value = variable.numpy().T if row.transposed else variable.numpy()
        np.testing.assert_allclose(
            value, expected[f"var/{row.google}"], atol=1e-4, rtol=0, err_msg=row.ours
        )
