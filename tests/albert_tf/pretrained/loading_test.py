"""Models by the name of a preset, or by the path of weights of one's own."""

from __future__ import annotations

import numpy as np
import pytest

from albert_tf import AlbertClassifier, AlbertEncoder, from_preset, preset_vocabulary
from albert_tf.checkpoints import huggingface
from albert_tf.errors import UserError
from albert_tf.pretrained import hub, loading
from albert_tf.pretrained.loading import locate


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("albert-base-zh", "The preset 'albert-base-zh' is an architecture without weights.*archi"),
        (
            "bert-base",
            "The preset 'bert-base' is an architecture without weights .* bert-base-uncased",
        ),
        ("albert-base-v3", "'albert-base-v3' does not exist. Did you mean 'albert-base-v2'"),
        ("Albert_base_v2", "'Albert_base_v2' does not exist. Did you mean 'albert-base-v2'"),
        ("bert-bas", "Did you mean 'bert-base'. The preset 'bert-base' is an architecture"),
    ],
)
def test_a_name_without_weights_is_explained(name, message):
    with pytest.raises(UserError, match=f"{message}.*for albert-base-v1, .*, electra-small-disc"):
        from_preset(name)


def test_a_local_folder(tiny_config, tmp_path):
    encoder = AlbertEncoder(tiny_config)
    huggingface.save(encoder, str(tmp_path))
    classifier = from_preset(str(tmp_path), AlbertClassifier, num_classes=2)
    np.testing.assert_array_equal(classifier.encoder.pooler.kernel, encoder.pooler.kernel)
    with_dropout = from_preset(str(tmp_path), config=tiny_config.replace(hidden_dropout_prob=0.2))
    assert with_dropout.config.hidden_dropout_prob == 0.2
    with pytest.raises(UserError, match="has no vocabulary"):
        preset_vocabulary(str(tmp_path))
    with pytest.raises(UserError, match="checkpoint .*albert-huge does not exist"):
        from_preset(str(tmp_path / "albert-huge"))


def test_a_published_name_is_downloaded(tiny_config, tmp_path, monkeypatch):
    huggingface.save(AlbertEncoder(tiny_config), str(tmp_path))
    (tmp_path / "spiece.model").touch()
    asked = []
    monkeypatch.setattr(loading, "download", lambda weights: asked.append(weights) or str(tmp_path))
    assert locate("albert-base-v2").path == str(tmp_path)
    assert preset_vocabulary("albert-base-v2") == str(tmp_path / "spiece.model")
    assert from_preset("albert-base-v2").config == tiny_config
    assert locate("albert/albert-base-v2").path == str(tmp_path)
    assert asked == [hub.PUBLISHED["albert-base-v2"]] * 4


def test_what_lies_at_a_path_goes_before_a_name(tiny_config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "download", lambda weights: pytest.fail("downloaded"))
    huggingface.save(AlbertEncoder(tiny_config), "albert-base-v2")
    assert locate("albert-base-v2/").path == "albert-base-v2"
    (tmp_path / "albert-large-v2.index").touch()
    assert locate("albert-large-v2").format == "google"


@pytest.mark.parametrize("path", ["./models/albert-base-v3", "quite-another-name"])
def test_what_is_like_no_name_is_taken_for_a_path(path):
    with pytest.raises(UserError, match=f"checkpoint {path} does not exist"):
        locate(path)
