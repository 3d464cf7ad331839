"""A model folder, read for export: what it gives, and what is said where something is missing."""

from __future__ import annotations

import shutil

import pytest

from albert_tf.checkpoints import native
from albert_tf.models import AlbertEncoder
from data_pipeline.errors import UserError
from export.model_folder import model_kind, open_model


@pytest.fixture
def folder(model_dirs, tmp_path):
    """A copy of the classifier's folder."""
    return shutil.copytree(model_dirs["classifier"], tmp_path / "model")


def opened(folder, tmp_path, length=None, **metadata):
    known = {**native.read_metadata(str(folder)), **metadata}
    files = tmp_path / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    return open_model(str(folder), known, length, str(files))


def test_what_is_read_and_goes_along(folder, tmp_path):
    loaded = opened(folder, tmp_path)
    names = [path.rsplit("/", 1)[1] for path in loaded.files()]
    assert names == ["albert_config.json", "labels.txt", "spiece.model", "tokenizer_settings.json"]
    written = (tmp_path / "files" / "labels.txt").read_text().splitlines()
    assert tuple(written) == loaded.labels and len(written) == loaded.metadata["num_classes"]
    assert isinstance(loaded.encoder, AlbertEncoder) and loaded.model.packed
    assert loaded.max_seq_length == loaded.metadata["max_seq_length"]
    assert opened(folder, tmp_path, length=9).max_seq_length == 9
    shortened = opened(folder, tmp_path, length=9).text_encoder()(["a long text " * 9])
    assert shortened["input_word_ids"].shape == [1, 9]


def test_a_model_without_classes_has_no_labels(model_dirs, tmp_path):
    loaded = opened(model_dirs["sentence_encoder"], tmp_path)
    assert loaded.labels == ()
    assert not (tmp_path / "files" / "labels.txt").exists()


@pytest.mark.parametrize(
    ("length", "metadata", "words"),
    [
        (7, {}, "--max_seq_length=7 should be between 8 and the model's"),
        (10**6, {}, "--max_seq_length=1000000 should be between 8"),
        (None, {"labels": ["one"]}, "names 1 labels for"),
    ],
)
def test_what_does_not_fit(folder, tmp_path, length, metadata, words):
    with pytest.raises(UserError, match=words):
        opened(folder, tmp_path, length, **metadata)


@pytest.mark.parametrize("name", ["spiece.model", "tokenizer_settings.json"])
def test_a_missing_file(folder, tmp_path, name):
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"{name} is missing, though"):
        opened(folder, tmp_path)


def test_kinds():
    assert model_kind({"task": "span"}) == "span"
    assert model_kind({"task": "classification", "num_classes": 3}) == "classification"
    assert model_kind({"task": "classification", "num_classes": 3, "labels": []}) == "regression"
    assert model_kind({"task": "classification", "num_classes": 1}) == "regression"
