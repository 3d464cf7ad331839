"""Fine-tuning heads equal google-research/albert's own: outputs, loss, gradients, six steps."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import models
from albert_tf.checkpoints import google
from albert_tf.checkpoints.names import variable_names
from albert_tf.checkpoints.weights import Allowed
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.models.losses import cross_entropy
from albert_tf.models.objectives import (
    ClassificationObjective,
    RegressionObjective,
    SpanObjective,
    SpanObjectiveV2,
    total_loss,
)
from albert_tf.optimization import AdamW, WarmupPolynomialDecay
from albert_tf.variable_names import variable_name

HEADS = Path(__file__).parents[1] / "goldens" / "finetuning" / "heads"
KINDS = ("classifier", "regression", "race", "squad_v1", "squad_v2")
SEED = tf.constant([0, 0])


def read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return dict(file)


CONFIG = AlbertConfig.from_json_file(str(HEADS / "albert_config.json"))
INPUTS = read(HEADS / "inputs.npz")
REAL = INPUTS["input_mask"].astype(bool)


def load_regression(model: models.AlbertClassifier) -> None:
    """The encoder of the classifier with another output layer, as the reference has it."""
    checkpoint = str(HEADS / "classifier" / "model.ckpt")
    assert google.load(model.encoder, checkpoint, Allowed(unused=["^output_"])) == []
    head = read(HEADS / "regression" / "head.npz")
    model.classification.set_weights([head["output_weights"].T, head["output_bias"]])


def load_model(kind: str, packed: bool = False) -> keras.Model:
    model = {
        "classifier": lambda: models.AlbertClassifier(CONFIG, 3, 0.0, packed=packed),
        "regression": lambda: models.AlbertClassifier(CONFIG, 1, 0.0, packed=packed),
        "race": lambda: models.AlbertMultipleChoice(CONFIG, 0.0, packed=packed),
        "squad_v1": lambda: models.AlbertSpanLabeler(CONFIG, packed=packed),
        "squad_v2": lambda: models.AlbertSpanLabelerV2(CONFIG, 5, 4, 0.0, packed=packed),
    }[kind]()
    if kind == "regression":
        load_regression(model)
    else:
        assert google.load(model, str(HEADS / kind / "model.ckpt")) == []
    return model


def make_batch(kind: str) -> dict[str, tf.Tensor]:
    """Inputs, labels and weights with this project's names."""
    inputs = INPUTS if kind != "race" else read(HEADS / "race_inputs.npz")
    names = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}
    names |= {"score_labels": "label_values", "class_labels": "label_ids"}
    names |= {"p_mask": "impossible_positions"}
    batch = {names.get(name, name): tf.constant(value) for name, value in inputs.items()}
    if kind == "race":
        for name in ("input_word_ids", "input_mask", "input_type_ids"):
            batch[name] = tf.reshape(batch[name], [2, 4, 24])
    return {**batch, "example_weights": tf.ones(len(inputs["input_ids"]))}


class ReferenceSpanTask(SpanObjective):
    """The task with google-research/albert's loss, in which padding may be an answer."""

    def ratios(self, batch, training, seed=None):
        hidden = self.model.encoder(batch, training=training)["sequence_output"]
        start, end = tf.unstack(self.model.span(hidden, training=training), axis=-1)
        losses = cross_entropy(start, batch["start_positions"])
        losses += cross_entropy(end, batch["end_positions"])
        ones = batch["example_weights"]
        return {"span_loss": (tf.reduce_sum(0.5 * losses * ones), tf.reduce_sum(ones))}


def loss_of(kind: str, model: keras.Model) -> Callable[[], tf.Tensor]:
    """The training loss of the model as a function of its variables."""
    tasks = {
        "regression": RegressionObjective,
        "squad_v1": ReferenceSpanTask,
        "squad_v2": SpanObjectiveV2,
    }
    task = tasks.get(kind, ClassificationObjective)(model)
    batch = make_batch(kind)

    def loss() -> tf.Tensor:
        ratios = task.ratios(batch, training=True, seed=SEED)
        if kind == "squad_v1":
            numerator, denominator = ratios["span_loss"]
            return numerator / denominator
        return total_loss(task, ratios)

    return loss


def assert_equal(value, expected, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(value, expected, atol=tolerance, rtol=tolerance)


def stored_values(model: keras.Model, values: list[tf.Tensor]) -> dict[str, np.ndarray]:
    """Values of the trainable variables as the goldens have them, by the reference's names."""
    table, stored = variable_names(model), {}
    for variable, value in zip(model.trainable_variables, values):
        row = table[variable_name(variable)]
        value = tf.convert_to_tensor(value).numpy()
        value = value.T if row.google_transposed else value
        stored[row.google] = value.ravel()[::11] if value.size > 200 else value
    return stored


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["classifier", "race", "regression"])
def test_logits(kind, packed):
    logits = load_model(kind, packed)(make_batch(kind))
    expected = read(HEADS / kind / "outputs.npz")
    if kind == "regression":
        assert_equal(logits[:, 0], expected["predictions"])
        return
    assert_equal(logits, expected["logits"])
    assert_equal(tf.nn.softmax(logits), expected["probabilities"])
    np.testing.assert_array_equal(tf.argmax(logits, axis=-1), expected["predictions"])


@pytest.mark.parametrize("packed", [False, True])
def test_span_logits_of_tokens(packed):
    """Padding is masked here and competes in the reference: real positions are compared."""
    outputs = load_model("squad_v1", packed)(make_batch("squad_v1"))
    expected = read(HEADS / "squad_v1" / "outputs.npz")
    for name in ("start_logits", "end_logits"):
        assert_equal(outputs[name].numpy()[REAL], expected[name][REAL])
        assert (outputs[name].numpy()[~REAL] < -9000).all()


def test_span_loss_over_tokens():
    """The loss that is trained here: the reference's logits, without those of padding."""
    expected = read(HEADS / "squad_v1" / "outputs.npz")
    logits = [np.where(REAL, expected[f"{end}_logits"], -np.inf) for end in ("start", "end")]
    rows = np.arange(4)
    losses = [
        np.log(np.exp(values).sum(axis=1)) - values[rows, INPUTS[f"{end}_positions"]]
        for end, values in zip(("start", "end"), logits)
    ]
    task = SpanObjective(load_model("squad_v1"))
    ratios = task.ratios(make_batch("squad_v1"), training=True, seed=SEED)
    assert_equal(total_loss(task, ratios), np.mean(losses))


@pytest.mark.parametrize("packed", [False, True])
def test_span_v2_given_the_start(packed):
    """Log-probabilities of allowed positions, and the answerability."""
    outputs = load_model("squad_v2", packed)(make_batch("squad_v2"), training=True, seed=SEED)
    expected = read(HEADS / "squad_v2" / "outputs.npz")
    allowed = INPUTS["p_mask"] == 0
    for name in ("start_log_probs", "end_log_probs"):
        assert_equal(outputs[name].numpy()[allowed], expected[f"training/{name}"][allowed])
        assert (np.exp(outputs[name].numpy()[~allowed]) == 0).all()
    assert_equal(outputs["answer_logits"], expected["training/cls_logits"])


@pytest.mark.parametrize("packed", [False, True])
def test_span_v2_beam(packed):
    batch = make_batch("squad_v2")
    batch.pop("start_positions")
    outputs = load_model("squad_v2", packed)(batch)
    expected = read(HEADS / "squad_v2" / "outputs.npz")
    starts = expected["inference/start_top_log_probs"] > -1000  # [4, 5]
    ends = expected["inference/end_top_log_probs"] > -1000  # [4, 20]
    # What follows a start that is forbidden means nothing either.
    ends &= np.repeat(starts, 4, axis=1)
    np.testing.assert_array_equal(starts.sum(axis=1), [5, 5, (INPUTS["p_mask"][2] == 0).sum(), 5])
    for name, real in (("start", starts), ("end", ends)):
        log_probs = outputs[f"{name}_top_log_probs"].numpy()
        assert_equal(log_probs[real], expected[f"inference/{name}_top_log_probs"][real])
        index = outputs[f"{name}_top_index"].numpy()
        np.testing.assert_array_equal(index[real], expected[f"inference/{name}_top_index"][real])
    assert (outputs["start_top_log_probs"].numpy()[~starts] < -1000).all()
    assert_equal(outputs["answer_logits"], expected["inference/cls_logits"])


def test_losses_of_span_v2():
    expected = read(HEADS / "squad_v2" / "outputs.npz")
    task = SpanObjectiveV2(load_model("squad_v2"))
    ratios = task.ratios(make_batch("squad_v2"), training=True, seed=SEED)
    spans, answer = (ratios[name].numerator / 4 for name in ("span_loss", "answer_loss"))
    assert_equal(spans, 0.5 * (expected["start_loss"] + expected["end_loss"]))
    assert_equal(answer, 0.5 * expected["answer_loss"])


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradients(kind):
    model = load_model(kind)
    loss = loss_of(kind, model)
    with tf.GradientTape() as tape:
        value = loss()
    assert_equal(value, read(HEADS / kind / "outputs.npz")["loss"])
    gradients = tape.gradient(
        value, model.trainable_variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    found, expected = stored_values(model, gradients), read(HEADS / kind / "gradients.npz")
    for name, gradient in found.items():
        if name in expected:
            assert_equal(gradient, expected[name])
        else:
            assert kind.startswith("squad") and name.startswith("bert/pooler/")
            assert not gradient.any()
    assert set(expected) <= set(found)


# The steps follow from the gradients, which are compared for all kinds.
@pytest.mark.parametrize(
    "kind",
    [
        *("classifier", "squad_v2"),
        *(pytest.param(kind, marks=pytest.mark.table) for kind in KINDS[1:4]),
    ],
)
def test_six_steps(kind):
    expected = read(HEADS / kind / "after_6_steps_adamw.npz")
    schedule = WarmupPolynomialDecay(
        float(expected["learning_rate"]),
        int(expected["num_train_steps"]),
        int(expected["num_warmup_steps"]),
    )
    model, optimizer, losses = load_model(kind), AdamW(schedule), []
    loss = loss_of(kind, model)
    for _ in range(6):
        with tf.GradientTape() as tape:
            value = loss()
        losses.append(float(value))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    losses.append(float(loss()))
    assert_equal(losses, expected["losses"], 1e-4)
    for name, value in stored_values(model, model.trainable_variables).items():
        assert_equal(value, expected[f"var/{name}"], 1e-4)
