"""Predictions on held-out text as a person reads them."""

import tensorflow as tf

from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining.examples import masked_lm_examples


def test_predictions_as_text(tiny_config):
    model = AlbertPretrainer(tiny_config)
    words = ["[CLS]", "[SEP]", "[MASK]", "\u2581a", "\u2581b", "c"]
    batch = {
        "input_word_ids": tf.constant([[0, 3, 2, 5, 1, 0]]),
        "input_mask": tf.constant([[1, 1, 1, 1, 1, 0]]),
        "input_type_ids": tf.zeros([1, 6], tf.int32),
        "masked_lm_positions": tf.constant([[2, 0]]),
        "masked_lm_ids": tf.constant([[4, 0]]),
        "masked_lm_weights": tf.constant([[1.0, 0.0]]),
    }

    def said(guess):
        bias = tf.one_hot(guess, tiny_config.vocab_size, on_value=100.0)
        model.masked_lm.output_bias.assign(bias)
        return masked_lm_examples(model, batch, lambda ids: [words[i] for i in ids])

    assert said(4) == "[CLS] a ** b**c[SEP]"
    assert said(3) == "[CLS] a ~~ a~~  bc[SEP]"
