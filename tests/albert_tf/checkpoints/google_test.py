"""Checkpoints of the reference: strict loading, and errors that list everything that is wrong."""

from pathlib import Path

import numpy as np
import pytest

from albert_tf.checkpoints import bundle, google
from albert_tf.config import AlbertConfig
from albert_tf.encoder import AlbertEncoder
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertPretrainer

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


def test_misshapen_variables_are_listed(config):
    model = AlbertPretrainer(config.replace(intermediate_size=48, max_position_embeddings=64))
    with pytest.raises(UserError) as error:
        google.load(model, PREFIX)
    message = str(error.value)
    assert (
        "misshapen: bert/embeddings/position_embeddings has shape [32, 16], the model needs [64, "
        "16]" in message
    )
    assert message.count("misshapen") == 4


def test_optimizer_slots_and_hub_prefixes(config, tmp_path):
    """A checkpoint as the reference writes it in training, under the names of a TF-Hub module."""
    tensors = {}
    for name, shape in bundle.read_shapes(PREFIX).items():
        tensors[f"module/{name}"] = bundle._reader(PREFIX).get_tensor(name)
        tensors[f"module/{name}/adam_m"] = np.zeros(shape, np.float32)
    tensors["global_step"] = np.int64(3)
    bundle.write(str(tmp_path / "model.ckpt"), tensors)
    direct, prefixed = AlbertPretrainer(config), AlbertPretrainer(config)
    google.load(direct, PREFIX)
    google.load(prefixed, str(tmp_path / "model.ckpt"))
    for left, right in zip(direct.variables, prefixed.variables):
        np.testing.assert_array_equal(left, right)


def test_sharing_that_the_reference_does_not_know(config):
    with pytest.raises(UserError, match="parameter_sharing='none' has no counterpart"):
        google.load(AlbertPretrainer(config.replace(parameter_sharing="none")), PREFIX)


def test_a_missing_or_damaged_checkpoint(config, tmp_path):
    with pytest.raises(UserError, match=r"there is no file .*nowhere\.index"):
        google.load(AlbertPretrainer(config), str(tmp_path / "nowhere"))
    (tmp_path / "broken.index").write_bytes(b"not an index")
    with pytest.raises(UserError, match="broken cannot be read"):
        google.load(AlbertPretrainer(config), str(tmp_path / "broken"))
