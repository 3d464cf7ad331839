"""Weights in the package are found by their name, need no network, and are what was made."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from albert_tf import AlbertClassifier, AlbertPretrainer, from_preset, get_preset, preset_vocabulary
from albert_tf.checkpoints import huggingface
from albert_tf.errors import UserError
from albert_tf.pretrained import loading
from albert_tf.training import InitialModel
from tests.conformance_cases import assert_equal

GOLDENS = Path(__file__).parents[2] / "goldens"
every_shipped = pytest.mark.parametrize("name", loading.shipped_names())
FRESH = """
import time
import albert_tf
from albert_tf import MaskFiller
begin = time.process_time()
model = albert_tf.from_preset("{name}", albert_tf.AlbertPretrainer)
seconds = time.process_time() - begin
print(seconds)
print(*(piece for piece, _ in MaskFiller("{name}")("It was a [MASK].", top_k=3)[0]), sep="|")
"""


@pytest.fixture
def in_package(tiny_config, tmp_path, monkeypatch):
    """A pre-trained model that the package holds under the name of a preset."""
    monkeypatch.setattr(loading, "_SHIPPED", str(tmp_path))
    monkeypatch.setattr(loading, "download", lambda weights: pytest.fail("downloaded"))
    model = AlbertPretrainer(tiny_config)
    for variable in model.variables:
        variable.assign_add(np.full(variable.shape, 0.25, np.float32))
    folder = tmp_path / "albert-tiny"
    huggingface.save(model, str(folder), dtype="float16")
    shutil.copy(GOLDENS / "hf_tokenizer" / "spiece.model", folder)
    return model


def test_the_name_is_enough(in_package, tmp_path):
    folder = tmp_path / "albert-tiny"
    assert loading.shipped_names() == ["albert-tiny"]
    assert preset_vocabulary("albert-tiny") == str(folder / "spiece.model")
    found = from_preset("albert-tiny", AlbertPretrainer)
    assert_equal(in_package.variables, found.variables, atol=1e-3)
    classifier = AlbertClassifier.from_preset("albert-tiny", num_classes=3)
    pooler = in_package.encoder.pooler.kernel
    np.testing.assert_allclose(classifier.encoder.pooler.kernel, pooler, atol=1e-3)
    start = InitialModel(init_checkpoint="albert-tiny")
    assert start.chosen_vocabulary(None) == str(folder / "spiece.model")
    assert start.config(50, 8, "data") == in_package.config
    with pytest.raises(UserError, match="mean 'albert-tiny'. .*; this package has albert-tiny; or"):
        from_preset("albert-tin")


def test_a_folder_without_weights_ships_nothing(tmp_path, monkeypatch):
    (tmp_path / "albert-tiny").mkdir()
    monkeypatch.setattr(loading, "_SHIPPED", str(tmp_path))
    assert loading.shipped_names() == [] and loading.shipped_folder("albert-tiny") is None
    monkeypatch.setattr(loading, "_SHIPPED", str(tmp_path / "none"))
    assert loading.shipped_names() == []


@every_shipped
def test_the_files_are_those_that_were_made(name):
    folder = Path(loading.shipped_folder(name))
    lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    hashes = {file: digest for digest, file in (line.split() for line in lines)}
    assert set(hashes) == {"config.json", "model.safetensors", "spiece.model"}
    for file, digest in hashes.items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest, file
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 11e6
    assert huggingface.read_config(str(folder)) == get_preset(name)
    architectures = json.loads((folder / "config.json").read_text())["architectures"]
    assert architectures == ["AlbertForPreTraining"]


@every_shipped
def test_a_new_process_without_network(name, quick_python):
    """Loads in little processor time, a second where nothing else runs, and fills a mask."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:1"}
    shown = subprocess.run(
        [quick_python, "-c", FRESH.format(name=name)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert float(shown[0]) < 5
    assert len(set(shown[1].split("|"))) == 3
