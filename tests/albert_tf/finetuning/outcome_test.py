"""The folders and files that a fine-tuning run leaves."""

from __future__ import annotations

import hashlib
import types

import pytest

from albert_tf.checkpoints import formats, huggingface, native
from albert_tf.finetuning import outcome
from albert_tf.models import AlbertClassifier


def test_the_model_to_be_used(tiny_config, tmp_path):
    assert outcome.best_folder(str(tmp_path)) == str(tmp_path / "model")
    model = AlbertClassifier(tiny_config, 2)
    native.save(model, str(tmp_path / "last_model"), {})
    assert outcome.best_folder(str(tmp_path)) == str(tmp_path / "last_model")
    native.save(model, str(tmp_path / "model"), {})
    assert outcome.best_folder(str(tmp_path)) == str(tmp_path / "model")


def test_the_model_that_answers(tiny_config, tmp_path, capsys):
    model, run, other = AlbertClassifier(tiny_config, 2), tmp_path / "run", str(tmp_path / "other")
    own, last = str(run / "model"), str(run / "last_model")
    assert outcome.answering_folder(str(run), other) == other  # There is no run.
    for folder in (own, last):
        native.save(model, folder, {})
    assert outcome.answering_folder(str(run), None) == own
    assert outcome.answering_folder(str(run), f"{last}/") == f"{last}/"
    assert capsys.readouterr().out == ""
    assert outcome.answering_folder(str(run), other) == own
    assert f"--init_checkpoint={other} is what the run began with" in capsys.readouterr().out


def test_a_last_model_that_has_fallen_back():
    """Said where the best one tells examples apart, and only there."""
    task = types.SimpleNamespace(remarks=lambda features, predictions, labels: predictions)
    results = [
        types.SimpleNamespace(split=split, notes=notes)
        for split, notes in (("dev", ()), ("other", ("All are 1.",)), ("sound", ()))
    ]
    last = {"dev": ["All are 0."], "other": ["All are 1."], "sound": []}
    (sentence,) = outcome.fallen_back(task, dict.fromkeys(last), last, (), results)
    assert sentence.startswith("The last model has fallen back") and "dev: All are 0." in sentence


def test_hash_of_weights(tiny_config, tmp_path):
    model = AlbertClassifier(tiny_config, 2)
    native.save(model, str(tmp_path / "native"), {})
    huggingface.save(model, str(tmp_path / "hf"))
    files = {"native": "model.ckpt.data-00000-of-00001", "hf": "model.safetensors"}
    for folder, name in files.items():
        found = outcome.weights_sha256(formats.recognize(str(tmp_path / folder)))
        assert found == hashlib.sha256((tmp_path / folder / name).read_bytes()).hexdigest()


@pytest.mark.parametrize("checkpoint", ["best", "last"])
def test_paths(tmp_path, checkpoint):
    path = outcome.kept_path(str(tmp_path), "dev", checkpoint)
    assert path == str(tmp_path / "outputs" / f"dev.{checkpoint}.npz")
    found = outcome.predictions_path(str(tmp_path), "mnli", "dev_matched")
    assert found == str(tmp_path / "predictions" / "mnli_dev_matched")
    assert (tmp_path / "predictions").is_dir()
