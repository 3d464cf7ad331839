"""Checkpoints of the reference: strict loading, and errors that list everything that is wrong."""

from pathlib import Path

import pytest

from albert_tf.checkpoints import google
from albert_tf.checkpoints.weights import Allowed
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertPretrainer,
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
    assert google.load(encoder, PREFIX, Allowed(unused=["^cls/"])) == []


def test_a_head_may_be_missing_where_that_is_allowed(config):
    model = AlbertClassifier(config, num_classes=3)
    with pytest.raises(UserError, match=r"missing: output_weights, shape \[3, 32\]"):
        google.load(model, PREFIX, Allowed(unused=["^cls/"]))
    kept = google.load(model, PREFIX, Allowed(["^classification/"], ["^cls/"]))
    assert kept == ["classification/logits/kernel", "classification/logits/bias"]


@pytest.mark.parametrize("sharing", ["ffn", "attention"])
def test_sharing_that_the_reference_does_not_know(config, sharing):
    with pytest.raises(UserError, match=f"parameter_sharing='{sharing}' has no counterpart"):
        google.load(AlbertPretrainer(config.replace(parameter_sharing=sharing)), PREFIX)


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
