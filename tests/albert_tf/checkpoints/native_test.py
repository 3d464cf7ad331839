"""Model folders: what is saved comes back, replacement is whole, mistakes are named."""

import hashlib
import json

import pytest

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from tests.conformance_cases import assert_equal


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "30k-clean.model"
    path.write_text("pieces")
    return str(path)


def test_round_trip_and_replacement(tiny_config, vocab_file, tmp_path):
    folder = str(tmp_path / "model")
    native.save(AlbertPretrainer(tiny_config), folder, {"step": 1}, vocab_file, {"lower": True})
    model = AlbertClassifier(tiny_config.replace(parameter_sharing="none"), 3, dropout_rate=0.2)
    native.save(model, folder, {"labels": ["a", "b", "c"]}, vocab_file, {"lower": False})
    assert native.read_metadata(folder) == {
        "task": "classification",
        "num_classes": 3,
        "dropout_rate": 0.2,
        "multi_label": False,
        "labels": ["a", "b", "c"],
    }
    loaded = native.load_model(folder)
    assert loaded.get_config() == model.get_config()
    assert_equal(model.variables, loaded.variables)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["30k-clean.model", "model"]
    assert (tmp_path / "model" / "spiece.model").read_text() == "pieces"
    assert json.loads((tmp_path / "model" / "tokenizer_settings.json").read_text()) == {
        "lower": False,
        "vocab_sha256": hashlib.sha256(b"pieces").hexdigest(),
    }


def test_a_failed_save_leaves_the_old_folder_and_nothing_else(tiny_config, tmp_path):
    folder = tmp_path / "model"
    native.save(AlbertPretrainer(tiny_config), str(folder), {"step": 1})
    with pytest.raises(Exception, match="nowhere"):
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
    with pytest.raises(UserError, match="config.json is damaged or was changed.*delete the entry"):
        native.load_model(str(folder))
    metadata = json.loads((folder / "model.json").read_text())
    del metadata["sha256"]  # As the message says.
    (folder / "model.json").write_text(json.dumps(metadata))
    with pytest.raises(UserError, match=r"misshapen: .*/word_embeddings has shape \[50, 8\]"):
        native.load_model(str(folder))


def test_an_undefined_score_is_null(tiny_config, tmp_path):
    folder = str(tmp_path / "model")
    metadata = {"metrics": {"f1": 50.0, "NoAns_f1": float("nan")}, "labels": ["a"]}
    native.save(AlbertPretrainer(tiny_config), folder, metadata)
    file = tmp_path / "model" / "model.json"
    assert json.loads(file.read_text(), parse_constant=pytest.fail)["metrics"]["NoAns_f1"] is None
    read = {name: native.read_metadata(folder)[name] for name in metadata}
    assert read == {"metrics": {"f1": 50.0, "NoAns_f1": None}, "labels": ["a"]}
    file.write_text(file.read_text().replace("null", "NaN"))  # As earlier versions wrote it.
    assert native.read_metadata(folder)["metrics"] == {"f1": 50.0, "NoAns_f1": None}


def test_a_model_of_another_class_gets_a_sentence(tiny_config, tmp_path):
    class Mine(AlbertPretrainer):
        pass

    with pytest.raises(UserError, match="Mine cannot be saved as a model folder. Expected one of"):
        native.save(Mine(tiny_config), str(tmp_path / "model"), {})
