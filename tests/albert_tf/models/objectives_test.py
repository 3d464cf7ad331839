"""What is minimized, for each objective that records may have been made for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models import AlbertPretrainer, objectives
from albert_tf.models.losses import Ratio
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import LAMB
from albert_tf.training import Stepper

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


@pytest.mark.parametrize(
    ("objective", "names"),
    [
        ("sop", ["masked_lm", "sentence_order"]),
        ("nsp", ["masked_lm", "next_sentence"]),
        ("none", ["masked_lm"]),
    ],
)
def test_the_objective_names_losses_and_metrics(
    tiny_config, pretraining_data, eager, objective, names
):
    task = PretrainingObjective(AlbertPretrainer(tiny_config), objective)
    figures = Stepper(task, None, ONE_DEVICE).evaluate(pretraining_data(0).take(2))
    expected = [f"{name}_{kind}" for name in names for kind in ("loss", "accuracy")]
    assert sorted(figures) == sorted([*expected, "loss"])
    assert figures["loss"] == pytest.approx(sum(figures[f"{name}_loss"] for name in names))


def test_without_a_pair_objective_its_head_stays_as_it_is(tiny_config, pretraining_data, eager):
    task = PretrainingObjective(AlbertPretrainer(tiny_config), "none")
    before = {variable.name: variable.numpy() for variable in task.model.trainable_variables}
    stepper = Stepper(task, LAMB(0.01), ONE_DEVICE)
    stepper.optimizer.build(task.model.trainable_variables)
    stepper.train(iter(stepper.distribute(pretraining_data(0))), tf.constant(2))
    for variable in task.model.trainable_variables:
        unused = "pooler" in variable.name or "sentence_order" in variable.name
        assert (variable.numpy() == before[variable.name]).all() == unused, variable.name


class Answering:
    """Stands for a model: gives what it was made with, and notes what it was asked."""

    def __init__(self, outputs) -> None:
        self._outputs = tf.nest.map_structure(tf.constant, outputs)

    def __call__(self, batch, training, seed):
        self.asked = (training, seed)
        return self._outputs


def figures(task, batch: dict) -> dict[str, tuple[float, float]]:
    """Numerators and denominators of a batch in training; those that are declared, and no other."""
    batch = {name: tf.constant(value) for name, value in batch.items()}
    ratios = task.ratios(batch, training=True, seed="seed")
    assert task.model.asked == (True, "seed")
    assert sorted(ratios) == sorted(task.metrics) and set(task.losses) <= set(task.metrics)
    for name, denominator in objectives.loss_denominators(task, batch).items():
        np.testing.assert_allclose(denominator, ratios[name].denominator)
    return {name: tuple(map(float, ratio)) for name, ratio in ratios.items()}


def near(*pair: float):
    return pytest.approx(pair, rel=1e-5)


LN2, LN3 = math.log(2), math.log(3)
WEIGHTS = [1.0, 0.5]


def test_pretraining_figures():
    """Uniform guesses about words, of which the first one counts as the largest."""
    words = np.zeros([2, 2, 3], np.float32)
    pair = np.float32([[0.0, 0.0], [0.0, math.log(3)]])
    outputs = {"masked_lm_logits": words, "sentence_order_logits": pair}
    batch = {
        "masked_lm_ids": [[0, 2], [0, 1]],
        "masked_lm_weights": [[1.0, 1.0], [0.5, 0.0]],
        "sentence_order_labels": [1, 1],
        "example_weights": WEIGHTS,
    }
    words = {"masked_lm_loss": near(2.5 * LN3, 2.5), "masked_lm_accuracy": near(1.5, 2.5)}
    loss = near(LN2 + 0.5 * math.log(4 / 3), 1.5)
    pair = {"sentence_order_loss": loss, "sentence_order_accuracy": near(0.5, 1.5)}
    assert figures(PretrainingObjective(Answering(outputs)), batch) == {**words, **pair}
    assert figures(PretrainingObjective(Answering(outputs), "none"), batch) == words
    nsp = figures(PretrainingObjective(Answering(outputs), "nsp"), batch)
    assert nsp["next_sentence_loss"] == loss and len(nsp) == 4


def test_classification_figures():
    logits = np.float32([[0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    batch = {"label_ids": [2, 1], "example_weights": WEIGHTS}
    certain = math.log(2 + math.exp(5)) - 5
    assert figures(objectives.ClassificationObjective(Answering(logits)), batch) == {
        "cross_entropy": near(LN3 + 0.5 * certain, 1.5),
        "accuracy": near(0.5, 1.5),
    }


def test_regression_figures():
    batch = {"label_values": [1.0, 3.5], "example_weights": WEIGHTS}
    found = figures(objectives.RegressionObjective(Answering(np.float32([[4.0], [3.0]]))), batch)
    assert found == {"squared_error": near(9 + 0.5 * 0.25, 1.5)}


def test_token_classification_figures():
    logits = np.zeros([1, 3, 2], np.float32)
    batch = {"token_label_ids": [[0, 1, 1]], "token_weights": [[1.0, 1.0, 0.0]]}
    assert figures(objectives.TokenClassificationObjective(Answering(logits)), batch) == {
        "cross_entropy": near(2 * LN2, 2.0),
        "accuracy": near(1.0, 2.0),
    }


SPANS = {"start_positions": [0, 2], "end_positions": [1, 0], "example_weights": WEIGHTS}
START, END = np.zeros([2, 3], np.float32), np.float32([[0.0, 0.0, -1e4]] * 2)


def test_span_figures():
    """Half of the start's cross-entropy and half of the end's."""
    outputs = {"start_logits": START, "end_logits": END}
    assert figures(objectives.SpanObjective(Answering(outputs)), SPANS) == {
        "span_loss": near(1.5 * (LN3 + LN2) / 2, 1.5),
        "start_accuracy": near(1.0, 1.5),
        "end_accuracy": near(0.5, 1.5),
    }


def answers(start, end, objective="none"):
    """The task of recurring spans for these logits, without words."""
    outputs = {"start_logits": np.float32(start), "end_logits": np.float32(end)}
    outputs["masked_lm_logits"] = np.zeros([len(start), 1, 3], np.float32)
    outputs["sentence_order_logits"] = np.zeros([len(start), 2], np.float32)
    return objectives.RecurringSpansObjective(Answering(outputs), objective)


def test_recurring_spans_of_one_answer_each_are_scored_as_spans_are():
    start = [[1, 2, 3], [0, 1, 0]]
    words = {"masked_lm_ids": [[0], [1]], "masked_lm_weights": [[1.0], [0.0]]}
    spans = {"span_starts": [[0], [1]], "span_ends": [[1], [0]], "span_weights": [[1.0], [0.5]]}
    single = {"start_positions": [0, 1], "end_positions": [1, 0], "example_weights": WEIGHTS}
    outputs = {"start_logits": np.float32(start), "end_logits": END}
    expected = figures(objectives.SpanObjective(Answering(outputs)), single)
    found = figures(answers(start, END), {**words, **spans})
    assert found["masked_lm_loss"] == near(LN3, 1.0)
    assert found["span_loss"] == near(*expected["span_loss"])
    assert found["start_accuracy"] == near(*expected["start_accuracy"])


def test_answers_of_recurring_spans_do_not_compete():
    """Two answers of one text, and room for a third; the largest other logit is 0.5."""
    logits = [[0, LN3, -1, 0.5]]
    batch = {"masked_lm_ids": [[0]], "masked_lm_weights": [[0.0]]}
    places, weights = [[1, 2, 0]], [[1.0, 1.0, 0.0]]
    batch |= {"span_starts": places, "span_ends": places, "span_weights": weights}
    found = figures(answers(logits, logits), batch)
    others = 1 + math.exp(0.5)
    losses = [-math.log(own / (own + others)) for own in (3, math.exp(-1))]
    assert found["span_loss"] == near(sum(losses), 2.0)
    assert found["start_accuracy"] == found["end_accuracy"] == near(1.0, 2.0)


def test_span_figures_with_answerability():
    """Log-probabilities are as good as logits; the answer counts half."""
    outputs = {
        "start_log_probs": START - np.float32(LN3),
        "end_log_probs": END - np.float32(LN2),
        "answer_logits": np.float32([0.0, math.log(3)]),
    }
    batch = {**SPANS, "is_impossible": [0, 1]}
    answer = 0.5 * (LN2 + 0.5 * math.log(4 / 3))
    assert figures(objectives.SpanObjectiveV2(Answering(outputs)), batch) == {
        "span_loss": near(1.5 * (LN3 + LN2) / 2, 1.5),
        "start_accuracy": near(1.0, 1.5),
        "end_accuracy": near(0.5, 1.5),
        "answer_loss": near(answer, 1.5),
        "answer_accuracy": near(1.5, 1.5),
    }


def test_the_loss_is_the_sum_of_the_ratios():
    task = PretrainingObjective(Answering({}))
    ratios = {name: Ratio(tf.constant(6.0), tf.constant(2.0)) for name in task.losses}
    assert float(objectives.total_loss(task, ratios)) == pytest.approx(2 * 6 / (2 + 1e-5))
    whole = {name: tf.constant(number) for name, number in zip(task.losses, (4.0, 12.0))}
    found = float(objectives.total_loss(task, ratios, whole))
    assert found == pytest.approx(6 / (4 + 1e-5) + 6 / (12 + 1e-5))
    empty = {name: Ratio(tf.constant(0.0), tf.constant(0.0)) for name in task.losses}
    assert float(objectives.total_loss(task, empty)) == 0.0
