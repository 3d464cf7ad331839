"""Fine-tuning runs of the benchmark: a search, more seeds, and nothing twice."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import AlbertEncoder
from albert_tf.checkpoints import huggingface
from albert_tf.training import DeviceSettings, InitialModel
from albert_tf.training.devices import prepare_devices
from data_pipeline.finetuning.examples import Split, TextExample
from data_pipeline.tokenizers.loading import load_tokenizer
from experiments.weights import runs
from experiments.weights.tasks import WEIGHTS_TASKS

VOCABULARY = str(Path(__file__).parents[2] / "goldens" / "hf_tokenizer" / "spiece.model")
PLAN = runs.Plan([1e-3, 1e-2], [1], num_seeds=2, train_batch_size=4, max_seq_length=8)


def split(name, size):
    words = random.Random(size)
    rows = [
        TextExample(str(row), words.choice(("the cat", "a mat")), None, str(row % 2), name, row + 1)
        for row in range(size)
    ]
    return Split(name, rows)


@pytest.fixture
def start(tiny_config, tmp_path):
    pieces = load_tokenizer(VOCABULARY).vocab_size
    config = tiny_config.replace(vocab_size=pieces, num_hidden_layers=1)
    huggingface.save(AlbertEncoder(config), str(tmp_path / "start"))
    return InitialModel(init_checkpoint=str(tmp_path / "start"))


def test_finished_runs_are_read(start, eager, tmp_path, monkeypatch):
    task, splits = WEIGHTS_TASKS["sst-2"], {"train": split("train", 8), "dev": split("dev", 6)}
    devices = prepare_devices(DeviceSettings("one_device", fast="off"))
    arguments = (task, start, VOCABULARY, splits, PLAN, tmp_path / "runs", devices)
    found = runs.train_all(*arguments)
    assert found.predictions.shape == (2, 6) and len(found.scores) == 2
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(names) == 3 and all(name.endswith(".json") for name in names)
    assert {"0.001-1-seed-0.json", "0.01-1-seed-0.json"} < set(names)

    trained = []
    monkeypatch.setattr(runs, "finetune", lambda *unused: trained.append(unused) or 1 / 0)
    again = runs.train_all(*arguments)
    np.testing.assert_array_equal(again.predictions, found.predictions)
    assert again.chosen == found.chosen and not trained
    other = dataclasses.replace(PLAN, train_batch_size=8)
    with pytest.raises(ZeroDivisionError):
        runs.train_all(task, start, VOCABULARY, splits, other, tmp_path / "runs", devices)
    weights = tmp_path / "start" / "model.safetensors"
    values = safetensors.numpy.load_file(weights)
    safetensors.numpy.save_file({name: value + 1 for name, value in values.items()}, weights)
    with pytest.raises(ZeroDivisionError):  # Other weights of the same name.
        runs.train_all(*arguments)
