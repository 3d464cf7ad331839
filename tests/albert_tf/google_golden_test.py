"""The forward pass, the losses and six optimizer steps equal those of google-research/albert's own
code.
"""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import google
from albert_tf.checkpoints.names import variable_names
from albert_tf.config import AlbertConfig
from albert_tf.layers import packing
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective, total_loss
from albert_tf.optimization import LAMB, AdamW, WarmupPolynomialDecay
from albert_tf.variable_names import variable_name

GOLDENS = Path(__file__).parents[1] / "goldens"


pytestmark = pytest.mark.usefixtures("plain_and_fast")

# Positions of a sequence: 16 in the goldens, and padding. Of 96 places 34 have tokens, and rows are
# left out even where the fast form fills them up to 64. Padding changes nothing that is compared.
GOLDEN_LENGTH, LENGTH = 16, 32
CASES = [
    ("google_tiny", "packed"),
    pytest.param(("google_tiny", "padded"), marks=pytest.mark.table),
    pytest.param(("google_tiny", "recomputed"), marks=pytest.mark.table),
    ("google_tiny_groups", "packed"),
    pytest.param(("google_tiny_groups", "padded"), marks=pytest.mark.one_stack),
    pytest.param(("google_tiny_groups", "recomputed"), marks=pytest.mark.one_stack),
]
# The steps follow from the gradients, which are compared in all cases.
STEPS = [
    pytest.param(
        (name, execution),
        optimizer,
        id=f"{name}-{execution}-{optimizer.__name__}",
        marks=[] if execution == "packed" else [pytest.mark.table],
    )
    for name in ("google_tiny", "google_tiny_groups")
    for execution in ("packed", "padded", "recomputed")
    for optimizer in (LAMB, AdamW)
]


@pytest.fixture(params=CASES, ids="-".join)
def case(request) -> tuple[str, str]:
    """Folder of the golden, and how the model is computed."""
    return request.param


@pytest.fixture
def golden(case) -> Path:
    return GOLDENS / case[0]


def read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return dict(file)


@pytest.fixture
def model(case, golden) -> AlbertPretrainer:
    _, execution = case
    config = AlbertConfig.from_json_file(str(golden / "albert_config.json"))
    config = config.replace(recompute=execution == "recomputed")
    model = AlbertPretrainer(config, packed=execution == "packed")
    assert google.load(model, str(golden / "model.ckpt")) == []
    return model


@pytest.fixture
def batch(golden) -> dict[str, tf.Tensor]:
    inputs = read(golden / "inputs.npz")

    def padded(name: str) -> tf.Tensor:
        return tf.constant(np.pad(inputs[name], [(0, 0), (0, LENGTH - GOLDEN_LENGTH)]))

    return {
        "input_word_ids": padded("input_ids"),
        "input_mask": padded("input_mask"),
        "input_type_ids": padded("segment_ids"),
        "masked_lm_positions": tf.constant(inputs["masked_lm_positions"]),
        "masked_lm_ids": tf.constant(inputs["masked_lm_ids"]),
        "masked_lm_weights": tf.constant(inputs["masked_lm_weights"]),
        "sentence_order_labels": tf.constant(inputs["sentence_order_labels"][:, 0]),
        "example_weights": tf.ones([3]),
    }


def assert_equal(value: tf.Tensor, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(value, expected, atol=tolerance, rtol=0)


def test_packing_leaves_rows_out(model, batch):
    """Or none of the packed cases of this file would compare packed rows."""
    rows = []
    to_rows = packing.PackedLayout.to_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            packing.PackedLayout,
            "to_rows",
            lambda self, padded: rows.append(to_rows(self, padded)) or rows[-1],
        )
        model(batch)
    assert bool(rows) is model.encoder.packed
    assert all(34 <= len(each) <= 64 < 3 * LENGTH for each in rows)


def test_every_layer(golden, model, batch):
    expected, outputs = read(golden / "outputs.npz"), model.encoder(batch)
    # Padding holds values in the reference, and zeros in packed execution.
    real = batch["input_mask"].numpy()[..., None] if model.encoder.packed else 1
    real = np.broadcast_to(real, [3, LENGTH, 1])[:, :GOLDEN_LENGTH]
    found = outputs["sequence_output"][:, :GOLDEN_LENGTH]
    assert_equal(found * real, expected["sequence_output"] * real)
    assert_equal(outputs["pooled_output"], expected["pooled_output"])
    layers = [name for name in expected if name.startswith("encoder_layer_")]
    assert len(layers) == len(outputs["encoder_outputs"])
    for name, hidden in zip(sorted(layers), outputs["encoder_outputs"]):
        assert_equal(hidden[:, :GOLDEN_LENGTH] * real, expected[name] * real)


def test_log_probabilities(golden, model, batch):
    expected, outputs = read(golden / "outputs.npz"), model(batch)
    words = tf.nn.log_softmax(outputs["masked_lm_logits"])  # [3, 4, V]
    order = tf.nn.log_softmax(outputs["sentence_order_logits"])
    expected_words = expected["masked_lm_log_probs"].reshape(words.shape)
    real = np.ones([3, 4, 1])
    if model.encoder.packed:  # Unused predictions point at padding in the goldens.
        positions = batch["masked_lm_positions"].numpy()
        real = np.take_along_axis(batch["input_mask"].numpy(), positions, axis=1)[..., None]
    assert_equal(words * real, expected_words * real)
    assert_equal(order, expected["sentence_order_log_probs"])


def test_losses(golden, model, batch):
    expected, task = read(golden / "outputs.npz"), PretrainingObjective(model)
    ratios = task.ratios(batch, training=False)
    for name in ("masked_lm_loss", "sentence_order_loss"):
        numerator, denominator = ratios[name]
        assert_equal(numerator / (denominator + 1e-5), expected[name])
    assert_equal(total_loss(task, ratios), expected["total_loss"])


def test_gradients(golden, model, batch):
    task = PretrainingObjective(model)
    with tf.GradientTape() as tape:
        loss = total_loss(task, task.ratios(batch, training=True))
    expected, table = read(golden / "gradients.npz"), variable_names(model)
    gradients = tape.gradient(loss, model.trainable_variables)
    assert len(gradients) == len(expected)
    for variable, gradient in zip(model.trainable_variables, gradients):
        row = table[variable_name(variable)]
        gradient = tf.convert_to_tensor(gradient).numpy()
        assert_equal(gradient.T if row.google_transposed else gradient, expected[row.google])


@pytest.mark.parametrize(("case", "optimizer_class"), STEPS, indirect=["case"])
def test_six_steps(golden, model, batch, optimizer_class):
    expected = read(golden / f"after_6_steps_{optimizer_class.__name__.lower()}.npz")
    schedule = WarmupPolynomialDecay(
        float(expected["learning_rate"]),
        int(expected["num_train_steps"]),
        int(expected["num_warmup_steps"]),
    )
    optimizer, task, losses = optimizer_class(schedule), PretrainingObjective(model), []
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
    assert_equal(losses, expected["losses"], 1e-4)
    table = variable_names(model)
    for variable in model.trainable_variables:
        row = table[variable_name(variable)]
        value = variable.numpy().T if row.google_transposed else variable.numpy()
        assert_equal(value, expected[f"var/{row.google}"], 1e-4)
