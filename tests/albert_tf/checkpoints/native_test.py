"""Model folders: what is saved comes back, replacement is whole, mistakes are named."""

import json

import numpy as np
import pytest

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertPretrainer


@pytest.fixture
def vocabulary_dir(tmp_path):
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    for name in native.VOCABULARY_FILES:
        (folder / name).write_text(name)
    return str(folder)


def test_round_trip_and_replacement(tiny_config, vocabulary_dir, tmp_path):
    folder = str(tmp_path / "model")
    native.save(AlbertPretrainer(tiny_config), folder, {"step": 1}, vocabulary_dir)
    model = AlbertClassifier(tiny_config.replace(parameter_sharing="none"), 3, dropout_rate=0.2)
    native.save(model, folder, {"labels": ["a", "b", "c"]}, vocabulary_dir)
    assert native.read_metadata(folder) == {
        "task": "classification",
        "num_classes": 3,
        "dropout_rate": 0.2,
        "labels": ["a", "b", "c"],
    }
    loaded = native.load_model(folder)
    assert loaded.get_config() == model.get_config()
    for left, right in zip(model.variables, loaded.variables):
        np.testing.assert_array_equal(left, right)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "vocabulary"]


def test_a_failed_save_leaves_the_old_folder_and_nothing_else(tiny_config, tmp_path):
    folder = tmp_path / "model"
    native.save(AlbertPretrainer(tiny_config), str(folder), {"step": 1})
    with pytest.raises(Exception, match="spiece.model"):
        native.save(
            AlbertPretrainer(tiny_config), str(folder), {"step": 2}, str(tmp_path / "nowhere")
        )
    assert native.read_metadata(str(folder))["step"] == 1
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_is_no_model(tmp_path):
    with pytest.raises(UserError, match="is not a model folder: it holds no model.json"):
        native.load_model(str(tmp_path))


def test_weights_that_do_not_fit_the_configuration(tiny_config, tmp_path):
    folder = tmp_path / "model"
    native.save(AlbertPretrainer(tiny_config), str(folder), {})
    config = json.loads((folder / "albert_config.json").read_text())
    (folder / "albert_config.json").write_text(json.dumps({**config, "vocab_size": 60}))
    with pytest.raises(
        UserError, match=r"misshapen: encoder/embeddings/word_embeddings has shape \[50, 8\]"
    ):
        native.load_model(str(folder))
