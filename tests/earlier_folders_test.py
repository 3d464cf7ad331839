"""Records, a run and a model that an earlier version wrote: loaded, resumed, made again."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albert_tf.checkpoints import native
from data_pipeline.pretraining.dataset import pretraining_dataset

EARLIER = Path(__file__).parent / "goldens" / "earlier_folders"
LOWER_CASED = {"lower": True, "rules": "google"}  # The tokenizer's settings.
RUN_FLAGS = (
    *("--config_file=config.json", "--train_data=records/corpus", "--eval_data=records/heldout"),
    *("--num_warmup_steps=1", "--checkpoint_steps=2", "--keep_checkpoints=1", "--eval_steps=4"),
    *("--train_batch_size=8", "--learning_rate=0.01", "--distribution=one_device", "--fast=off"),
)


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    with np.load(EARLIER / "expected.npz") as file:
        return dict(file)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A copy of the folders, which is the working directory."""
    copy = shutil.copytree(EARLIER, tmp_path / "earlier")
    monkeypatch.chdir(copy)
    return copy


def part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Arrays whose names begin so, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def rounded(path: Path) -> dict[str, Any]:
    """The content of a JSON file, its numbers to twelve digits."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text, parse_float=lambda digits: f"{float(digits):.12g}")


def words_of(batch: dict[str, np.ndarray]) -> np.ndarray:
    """The words of each row before it was masked, sorted, since segments may be swapped."""
    words = batch["input_word_ids"].copy()
    row, prediction = np.nonzero(batch["masked_lm_weights"])
    position = batch["masked_lm_positions"][row, prediction]
    words[row, position] = batch["masked_lm_ids"][row, prediction]
    return np.sort(words, axis=1)


@pytest.mark.parametrize("number", [0, 5])
def test_batches_of_earlier_records(expected, number):
    dataset = pretraining_dataset(str(EARLIER / "records/corpus"), 8, seed=0, start_step=number)
    batch = next(iter(dataset))
    # The same records in the same order, as that version masked and swapped other ones.
    found = {name: values.numpy() for name, values in batch.items()}
    earlier = part(expected, f"batches/{number}/")
    assert {name: values.shape for name, values in found.items()} == {
        name: values.shape for name, values in earlier.items()
    }
    for name in ("input_mask", "example_weights"):
        np.testing.assert_array_equal(found[name], earlier[name], name)
    np.testing.assert_array_equal(words_of(found), words_of(earlier))


def test_static_records(expected):
    batch = next(iter(pretraining_dataset(str(EARLIER / "records/static"), 8, training=False)))
    for name, array in part(expected, "static/").items():
        np.testing.assert_array_equal(batch[name], array, err_msg=name)


@pytest.mark.parametrize(
    ("name", "text", "flags"),
    [
        ("corpus", "corpus.txt", []),
        ("heldout", "heldout.txt", []),
        ("static", "heldout.txt", ["--masking=static", "--dupe_factor=1"]),
    ],
)
def test_the_same_records_are_made_again(name, text, flags, folder, result_of):
    made = (f"--input={text}", "--vocab_file=vocabulary/vocab.txt", "--max_seq_length=32", *flags)
    result = result_of("data_pipeline.create_pretraining_data", "--output_dir=again", *made)
    assert result.returncode == 0, result.stderr
    earlier = folder / "records" / name
    assert sorted(os.listdir(folder / "again")) == sorted(os.listdir(earlier))
    for path in earlier.iterdir():
        again = folder / "again" / path.name
        if path.name == "manifest.json":  # Its statistics depend on NumPy in the last digit.
            values = rounded(again)
            # Earlier versions wrote no hashes and no formats, and did not count these tokens.
            del values["sha256"]
            for name in ("held_tokens", "tokens_looked_at", "held_share", "formats"):
                del values["corpus"][name]
            assert values.pop("tokenizer").items() >= LOWER_CASED.items()
            assert {**values, "tokenizer": LOWER_CASED} == rounded(path)
        elif path.name == "tokenizer_settings.json":  # Later versions say more.
            assert json.loads(again.read_bytes()).items() >= LOWER_CASED.items()
            assert json.loads(path.read_bytes()) == LOWER_CASED
        else:
            assert again.read_bytes() == path.read_bytes(), path.name


def test_an_earlier_model(expected):
    outputs = native.load_model(str(EARLIER / "run/model"))(part(expected, "batches/0/"))
    for name, array in part(expected, "outputs/").items():
        np.testing.assert_allclose(outputs[name], array, atol=1e-5, err_msg=name)


def test_an_earlier_run_goes_on(expected, folder, eager, result_of):
    flags = (*RUN_FLAGS, "--output_dir=run", "--num_train_steps=6")
    result = result_of("albert_tf.run_pretraining", *flags)
    assert result.returncode == 0, result.stderr
    assert "continues with different random numbers for masks," in result.stdout
    with open("run/metrics.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "train"]
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    losses = [float(row["loss"]) for row in rows]
    # The last update has other masks than in the earlier version, whose loss was 5.000.
    np.testing.assert_allclose(losses, [*expected["steps"][:2], 4.987802], atol=1e-4)
