"""Task models: names, settings, seeds. What they compute: google_golden_test.py,
heads_golden_test.py and huggingface_golden_test.py.
"""

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
DROPOUT = {"dropout_rate": 0.25}
CLASSES = {"num_classes": 3, **DROPOUT}
# Name -> (class, settings, heads).
MODELS = {
    "pretrainer": (models.AlbertPretrainer, {}, {"masked_lm", "sentence_order"}),
    "span_pretrainer": (
        models.AlbertSpanPretrainer,
        {"span_mask_share": 0.1},
        {"masked_lm", "sentence_order", "span"},
    ),
    "replaced_token_detector": (
        models.AlbertReplacedTokenDetector,
        {},
        {"replaced", "sentence_order"},
    ),
    "classifier": (models.AlbertClassifier, CLASSES, {"classification"}),
    "token_classifier": (models.AlbertTokenClassifier, CLASSES, {"classification"}),
    "multiple_choice": (models.AlbertMultipleChoice, DROPOUT, {"classification"}),
    "span_labeler": (models.AlbertSpanLabeler, {}, {"span"}),
    "span_labeler_v2": (
        models.AlbertSpanLabelerV2,
        {"start_n_top": 2, "end_n_top": 3, **DROPOUT},
        {"span"},
    ),
    "sentence_encoder": (models.AlbertSentenceEncoder, {}, set()),
}


def test_sentence_encoder(tiny_config):
    model = models.AlbertSentenceEncoder(tiny_config)
    outputs, hidden = model(INPUTS), model.encoder(INPUTS)
    np.testing.assert_allclose(outputs["pooled_output"], hidden["pooled_output"], atol=1e-6)
    first, second = hidden["sequence_output"].numpy()
    expected = [first.mean(axis=0), second[:2].mean(axis=0)]
    np.testing.assert_allclose(outputs["mean_output"], expected, atol=1e-5)
    nothing = model({**INPUTS, "input_mask": tf.zeros_like(MASK)})["mean_output"]
    np.testing.assert_array_equal(nothing, np.zeros([2, 16]))


@pytest.mark.parametrize("name", MODELS)
def test_names_settings_and_heads(tiny_config, name):
    kind, settings, heads = MODELS[name]
    model = kind(tiny_config, packed=False, **settings)
    assert model.name == name and model.built and model.encoder.packed is False
    found = model.get_config()
    assert {key: found[key] for key in settings} == settings
    assert kind.from_config(found).get_config() == found
    scopes = {variable.name.split("/")[0] for variable in model.variables}
    assert scopes == {"encoder", *heads}
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
    kind, settings, heads = MODELS[name]
    model, seeds = kind(tiny_config, **settings), []
    head = getattr(model, *heads)
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
