"""The objective of pairs: losses as PyTorch computes them, candidates, hidden tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models import AlbertSentenceEncoder
from albert_tf.models.pairs import PairObjective, cosine_loss, hide_tokens, in_batch_loss
from tests.conformance_cases import BASE, INPUTS, make_batch

GOLDEN = np.load(Path(__file__).parents[2] / "goldens" / "pairs" / "losses.npz")
FIRST, SECOND = tf.constant(GOLDEN["first"]), tf.constant(GOLDEN["second"])
ONES = tf.ones([len(FIRST)])


@pytest.mark.parametrize(
    ("name", "loss", "further"),
    [("in_batch", in_batch_loss, ONES), ("cosine", cosine_loss, tf.constant(GOLDEN["labels"]))],
)
def test_losses_and_gradients_are_pytorchs(name, loss, further):
    with tf.GradientTape() as tape:
        tape.watch([FIRST, SECOND])
        value = tf.reduce_mean(loss(FIRST, SECOND, further))
    np.testing.assert_allclose(value, GOLDEN[f"{name}_loss"], rtol=0, atol=1e-6)
    for side, gradient in zip(("first", "second"), tape.gradient(value, [FIRST, SECOND])):
        np.testing.assert_allclose(gradient, GOLDEN[f"{name}_{side}"], rtol=0, atol=1e-6)


def test_rows_that_fill_a_batch_are_no_candidates():
    weights = tf.constant([1.0, 1, 1, 1, 0, 0])
    filled = in_batch_loss(FIRST, SECOND, weights)[:4]
    np.testing.assert_allclose(filled, in_batch_loss(FIRST[:4], SECOND[:4], ONES[:4]), atol=1e-6)


def test_the_objective_takes_the_two_texts_of_a_row():
    model, batch = AlbertSentenceEncoder(BASE), make_batch(PairObjective)
    texts = [{name: batch[name][:, place] for name in INPUTS} for place in (0, 1)]
    first, second = (model(text)["mean_output"] for text in texts)
    labels = batch["label_values"]
    for loss, expected in (
        ("in_batch", in_batch_loss(first, second, ONES[:4])),
        ("cosine", cosine_loss(first, second, labels)),
    ):
        (ratio,) = PairObjective(model, loss).ratios(batch, training=False).values()
        np.testing.assert_allclose(ratio.numerator, tf.reduce_sum(expected), atol=1e-5)
        assert float(ratio.denominator) == 4


def test_hidden_tokens_are_a_share_in_spans_and_follow_the_seed():
    mask = tf.sequence_mask([[200, 100]] * 64, 256, tf.int32)  # [64, 2, 256]
    hidden = hide_tokens(mask, 0.3, tf.constant([1, 2])).numpy()
    taken = mask.numpy() - hidden
    assert taken.min() == 0 and not taken[:, :, 0].any()
    assert not taken[:, 0, 199].any() and not taken[:, 1, 99].any()  # [SEP]
    share = taken.sum() / mask.numpy().sum()
    assert 0.27 < share < 0.31
    begins = taken[:, :, 1:] > taken[:, :, :-1]
    assert taken.sum() / begins.sum() > 3  # Spans are of three tokens or overlap.
    assert not np.array_equal(taken[:, 0, :100], taken[:, 1, :100])
    np.testing.assert_array_equal(hidden, hide_tokens(mask, 0.3, tf.constant([1, 2])))
    assert not np.array_equal(hidden, hide_tokens(mask, 0.3, tf.constant([1, 3])))
    assert not np.array_equal(hidden, hide_tokens(mask, 0.3, None))


def test_only_training_hides():
    model, batch, seed = AlbertSentenceEncoder(BASE), make_batch(PairObjective), tf.constant([0, 1])
    objective, plain = PairObjective(model, mask_prob=0.5), PairObjective(model)

    def loss(task, training):
        return float(task.ratios(batch, training, seed)["pair_loss"].numerator)

    assert loss(objective, False) == loss(plain, False)
    assert loss(objective, True) != loss(plain, True)
