"""Checkpoints of the reference: strict loading, and errors that list everything that is wrong."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import google
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
    AlbertTokenClassifier,
)

GOLDEN = Path(__file__).parents[2] / "goldens" / "google_tiny"
PREFIX = str(GOLDEN / "model.ckpt")


@pytest.fixture
def config() -> AlbertConfig:
    return AlbertConfig.from_json_file(str(GOLDEN / "albert_config.json"))


def test_an_encoder_leaves_the_heads_unread(config):
    encoder = AlbertEncoder(config)
    with pytest.raises(UserError, match="unused: cls/predictions/output_bias"):
        google.load(encoder, PREFIX)
    assert google.load(encoder, PREFIX, allow_unused=["^cls/"]) == []


def test_missing_variables_are_listed_and_nothing_is_assigned(config):
    model = AlbertClassifier(config, num_classes=3)
    before = model.encoder.pooler.kernel.numpy()
    with pytest.raises(
        UserError,
        match=r"missing: output_weights, shape \[3, 32\]\n  missing: output_bias, shape \[3\]",
    ):
        google.load(model, PREFIX, allow_unused=["^cls/"])
    np.testing.assert_array_equal(model.encoder.pooler.kernel, before)
    kept = google.load(model, PREFIX, allow_missing=["^classification/"], allow_unused=["^cls/"])
    assert kept == ["classification/logits/kernel", "classification/logits/bias"]


def test_sharing_that_the_reference_does_not_know(config):
    with pytest.raises(UserError, match="parameter_sharing='ffn' has no counterpart"):
        google.load(AlbertPretrainer(config.replace(parameter_sharing="ffn")), PREFIX)


def test_written_names_and_shapes_are_the_references(config, tmp_path):
    model = AlbertPretrainer(config)
    google.load(model, PREFIX)
    google.save(model, str(tmp_path / "model.ckpt"))
    written = tf.train.load_checkpoint(str(tmp_path / "model.ckpt"))
    reference = tf.train.load_checkpoint(PREFIX)
    assert written.get_variable_to_shape_map() == reference.get_variable_to_shape_map()
    for name in reference.get_variable_to_shape_map():
        np.testing.assert_array_equal(written.get_tensor(name), reference.get_tensor(name))


def test_the_heads_of_the_references_fine_tuned_models(config, tmp_path):
    """Names and shapes as run_squad_v1, run_squad_v2 and run_race write them."""
    expected = {
        AlbertSpanLabeler: {"cls/squad/output_weights": [2, 32], "cls/squad/output_bias": [2]},
        AlbertSpanLabelerV2: {
            "start_logits/dense/kernel": [32, 1],
            "start_logits/dense/bias": [1],
            "end_logits/dense_0/kernel": [64, 32],
            "end_logits/dense_0/bias": [32],
            "end_logits/LayerNorm/gamma": [32],
            "end_logits/LayerNorm/beta": [32],
            "end_logits/dense_1/kernel": [32, 1],
            "end_logits/dense_1/bias": [1],
            "answer_class/dense_0/kernel": [64, 32],
            "answer_class/dense_0/bias": [32],
            "answer_class/dense_1/kernel": [32, 1],
        },
        AlbertMultipleChoice: {"output_weights": [1, 32], "output_bias": [1]},
    }
    for index, (model_class, heads) in enumerate(expected.items()):
        google.save(model_class(config), str(tmp_path / str(index)))
        shapes = tf.train.load_checkpoint(str(tmp_path / str(index))).get_variable_to_shape_map()
        assert {name: shapes[name] for name in shapes if not name.startswith("bert/")} == heads


def test_a_model_without_counterpart(config, tmp_path):
    with pytest.raises(UserError, match="AlbertTokenClassifier has no counterpart"):
        google.save(AlbertTokenClassifier(config, 2), str(tmp_path / "model.ckpt"))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"hidden_act": "gelu_erf"}, "GELU by tanh"), ({"layer_norm_eps": 1e-6}, "always adds 1e-12")],
)
def test_what_the_reference_would_compute_otherwise(config, tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        google.save(AlbertEncoder(config.replace(**change)), str(tmp_path / "model.ckpt"))
    assert not list(tmp_path.iterdir())
