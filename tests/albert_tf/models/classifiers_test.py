"""Task models: encoder and head put together, by their own parts."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import models
from albert_tf.layers.operations import fold_in

IDS = tf.constant([[3, 4, 5, 6], [7, 8, 0, 0]])
MASK = tf.constant([[1, 1, 1, 1], [1, 1, 0, 0]])
INPUTS = {"input_word_ids": IDS, "input_mask": MASK, "input_type_ids": tf.zeros_like(IDS)}
REAL = MASK.numpy() > 0


@pytest.fixture(autouse=True)
def plain(fast_choice):
    fast_choice("off")


def filled(model):
    rng = np.random.default_rng(1)
    model.set_weights([0.3 * rng.normal(size=w.shape) for w in model.get_weights()])
    return model


def hidden(model) -> tuple[np.ndarray, np.ndarray]:
    """Sequence and pooled output."""
    outputs = model.encoder(INPUTS)
    return outputs["sequence_output"].numpy(), outputs["pooled_output"].numpy()


def dense(layer, x):
    kernel, bias = layer.get_weights()
    return x @ kernel + bias


def test_pretrainer(tiny_config):
    model = filled(models.AlbertPretrainer(tiny_config))
    positions = tf.constant([[1, 3], [1, 0]], tf.int64)
    outputs = model({**INPUTS, "masked_lm_positions": positions})
    sequence, pooled = hidden(model)
    at = tf.constant(np.take_along_axis(sequence, positions.numpy()[..., None], axis=1))
    words = model.masked_lm(at, model.encoder.embeddings.word_embeddings)
    assert outputs["masked_lm_logits"].shape == [2, 2, 50]
    np.testing.assert_allclose(outputs["masked_lm_logits"], words, atol=1e-4)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-5)
    pair = dense(model.sentence_order.logits, pooled)
    assert pair.shape == (2, 2)
    np.testing.assert_allclose(outputs["sentence_order_logits"], pair, atol=1e-5)


def test_classifier(tiny_config):
    model = filled(models.AlbertClassifier(tiny_config, 3))
    expected = dense(model.classification.logits, hidden(model)[1])
    assert expected.shape == (2, 3)
    np.testing.assert_allclose(model(INPUTS), expected, atol=1e-5)


def test_token_classifier(tiny_config):
    model = filled(models.AlbertTokenClassifier(tiny_config, 3))
    expected = dense(model.classification.logits, hidden(model)[0])
    assert model(INPUTS).shape == [2, 4, 3]
    np.testing.assert_allclose(model(INPUTS).numpy()[REAL], expected[REAL], atol=1e-5)


def test_multiple_choice(tiny_config):
    """Two texts for each of two examples: those of INPUTS, and the same in another order."""
    model = filled(models.AlbertMultipleChoice(tiny_config))
    inputs = {name: tf.stack([each, each[::-1]]) for name, each in INPUTS.items()}
    scores = dense(model.classification.logits, hidden(model)[1])[:, 0]
    np.testing.assert_allclose(model(inputs), [scores, scores[::-1]], atol=1e-5)


def test_span_labeler(tiny_config):
    model = filled(models.AlbertSpanLabeler(tiny_config))
    outputs = model(INPUTS)
    logits = dense(model.span.logits, hidden(model)[0])
    for index, name in enumerate(("start_logits", "end_logits")):
        np.testing.assert_allclose(outputs[name].numpy()[REAL], logits[REAL][:, index], atol=1e-5)
        assert (outputs[name].numpy()[~REAL] < -9000).all()


def test_span_labeler_with_answerability(tiny_config):
    model = filled(models.AlbertSpanLabelerV2(tiny_config, start_n_top=2, end_n_top=3))
    impossible, starts = 1 - MASK, tf.constant([2, 1])
    sequence = tf.constant(hidden(model)[0])
    for given in ({}, {"start_positions": starts}):
        found = model({**INPUTS, "impossible_positions": impossible, **given})
        expected = model.span(sequence, impossible, given.get("start_positions"))
        assert sorted(found) == sorted(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, err_msg=name)


def test_sentence_encoder(tiny_config):
    model = filled(models.AlbertSentenceEncoder(tiny_config))
    outputs, (sequence, pooled) = model(INPUTS), hidden(model)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-6)
    expected = [sequence[0].mean(axis=0), sequence[1, :2].mean(axis=0)]
    np.testing.assert_allclose(outputs["mean_output"], expected, atol=1e-5)
    nothing = model({**INPUTS, "input_mask": tf.zeros_like(MASK)})["mean_output"]
    np.testing.assert_array_equal(nothing, np.zeros([2, 16]))


MODELS = {
    "pretrainer": (models.AlbertPretrainer, {}),
    "span_pretrainer": (models.AlbertSpanPretrainer, {"span_mask_share": 0.1}),
    "replaced_token_detector": (models.AlbertReplacedTokenDetector, {}),
    "classifier": (models.AlbertClassifier, {"num_classes": 3, "dropout_rate": 0.25}),
    "token_classifier": (models.AlbertTokenClassifier, {"num_classes": 3, "dropout_rate": 0.25}),
    "multiple_choice": (models.AlbertMultipleChoice, {"dropout_rate": 0.25}),
    "span_labeler": (models.AlbertSpanLabeler, {}),
    "span_labeler_v2": (
        models.AlbertSpanLabelerV2,
        {"start_n_top": 2, "end_n_top": 3, "dropout_rate": 0.25},
    ),
    "sentence_encoder": (models.AlbertSentenceEncoder, {}),
}
HEADS = {
    "pretrainer": {"masked_lm", "sentence_order"},
    "span_pretrainer": {"masked_lm", "sentence_order", "span"},
    "replaced_token_detector": {"replaced", "sentence_order"},
    "classifier": {"classification"},
    "token_classifier": {"classification"},
    "multiple_choice": {"classification"},
    "span_labeler": {"span"},
    "span_labeler_v2": {"span"},
    "sentence_encoder": set(),
}


@pytest.mark.parametrize("name", MODELS)
def test_names_settings_and_heads(tiny_config, name):
    kind, settings = MODELS[name]
    model = kind(tiny_config, packed=False, **settings)
    assert model.name == name and model.built and model.encoder.packed is False
    found = model.get_config()
    assert {key: found[key] for key in settings} == settings
    copy = kind.from_config(found)
    assert copy.get_config() == found
    scopes = {variable.name.split("/")[0] for variable in model.variables}
    assert scopes == {"encoder", *HEADS[name]}
    other = kind(tiny_config, name="other", **settings)
    assert [v.name for v in other.variables] == [v.name for v in model.variables]


def test_the_references_defaults(tiny_config):
    for kind in (models.AlbertClassifier, models.AlbertTokenClassifier):
        assert kind(tiny_config, 2).dropout_rate == 0.1
    assert models.AlbertMultipleChoice(tiny_config).classification.dropout.rate == 0.1
    span = models.AlbertSpanLabelerV2(tiny_config).span
    assert (span.start_n_top, span.end_n_top) == (5, 5)


@pytest.mark.parametrize(
    "name", ["classifier", "token_classifier", "multiple_choice", "span_labeler_v2"]
)
def test_encoder_and_head_have_seeds_of_their_own(tiny_config, monkeypatch, name):
    kind, settings = MODELS[name]
    model, seeds = kind(tiny_config, **settings), []
    head = getattr(model, *HEADS[name])
    dropout = head.answer_dropout if "span" in name else head.dropout
    layers = model.encoder._layers

    def drop(x, training, seed):
        seeds.append((training, seed.numpy().tolist()))
        return x

    def run(*given, **named):
        arguments = inspect.signature(layers).bind(*given, **named).arguments
        seeds.append((arguments["training"], arguments["seed"].numpy().tolist()))
        return layers(*given, **named)

    monkeypatch.setattr(dropout, "call", drop)
    monkeypatch.setattr(model.encoder, "_layers", run)
    inputs = {**INPUTS, "impossible_positions": 1 - MASK}
    if "choice" in name:
        inputs = {key: each[None] for key, each in INPUTS.items()}
    seed = tf.constant([3, 4])
    model(inputs, training=True, seed=seed)
    assert seeds == [(True, fold_in(seed, part).numpy().tolist()) for part in (0, 1)]
