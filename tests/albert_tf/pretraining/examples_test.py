"""Predictions on held-out text as a person reads them."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining import HeldOut, examples, open_records
from albert_tf.pretraining.examples import masked_lm_examples
from data_pipeline.records.record_folder import read_manifest


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
        return masked_lm_examples(model, batch, words)

    assert said(4) == "[CLS] a ** b**c[SEP]"
    assert said(3) == "[CLS] a ~~ a~~  bc[SEP]"


def test_the_first_texts_of_held_out_records(monkeypatch, work):
    """Four of them, or as many as there are, with the pieces of the training's vocabulary."""
    model = AlbertPretrainer(AlbertConfig.from_json_file(str(work / "config.json")))
    data = open_records(str(work / "sop"), batch_size=8)
    held_out = HeldOut([str(work / "nsp")], batch_size=6)
    sizes, make = [], examples.pretraining_dataset

    def dataset(folder, batch_size, training):
        assert folder == str(work / "nsp") and not training
        sizes.append(batch_size)
        return make(folder, batch_size, training=training)

    monkeypatch.setattr(examples, "pretraining_dataset", dataset)
    texts = examples.example_writer(model, data, held_out)().split("\n\n")
    assert sizes == [6] and len(texts) == 4
    assert all("**" in text or "~~" in text for text in texts)
    held_out.batch_size = 10**6
    examples.example_writer(model, data, held_out)
    assert sizes[1] == read_manifest(str(work / "nsp"))["num_records"]
