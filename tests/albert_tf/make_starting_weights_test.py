"""The program: counts what the records hold, and its folder starts a run."""

import json
from pathlib import Path

import numpy as np
import pytest

from albert_tf.checkpoints import native
from albert_tf.pretraining import open_records, original_words
from data_pipeline.files import atomic_files
from tests.run_results import check_tensors

MODULE = "albert_tf.make_starting_weights"


@pytest.fixture
def config_file(work, tmp_path) -> str:
    """The configuration of `work`, with embeddings that can hold words and positions."""
    config = json.loads((work / "config.json").read_text(encoding="utf-8"))
    config.update(embedding_size=16, hidden_size=32, num_attention_heads=2)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def test_from_records_to_a_run(work, tmp_path, config_file, result_of, pretrain, eagerly):
    start = str(tmp_path / "start")
    arguments = (f"--config_file={config_file}", f"--train_data={work / 'sop'}")
    made = result_of(MODULE, *arguments, f"--output_dir={start}", "--num_tokens=1000")
    assert made.returncode == 0, made.stderr
    assert f"Wrote {start}: " in made.stdout
    assert native.read_metadata(start)["task"] == "pretraining"

    flags = {"init_checkpoint": start, "config_file": ""}
    with eagerly():
        run = pretrain(**flags, num_train_steps=1, num_warmup_steps=0)
    assert run.returncode == 0, run.stderr

    again = result_of(MODULE, *arguments, f"--output_dir={start}")
    assert again.returncode == 2 and "Name a new folder, or pass --overwrite." in again.stderr
    Path(tmp_path, "mine").mkdir()
    Path(tmp_path, "mine", "thesis.txt").touch()
    mine = result_of(MODULE, *arguments, f"--output_dir={tmp_path / 'mine'}", "--overwrite")
    assert mine.returncode == 2 and "mine is not a model folder, so it is not" in mine.stderr
    remote = f"ram://{tmp_path.name}/start"
    atomic_files.write_json(f"{remote}/{native.METADATA_FILE}", {})
    there = result_of(MODULE, *arguments, f"--output_dir={remote}")
    assert there.returncode == 2 and "start exists. Name a new folder" in there.stderr
    other = str(tmp_path / "other")
    same = result_of(MODULE, *arguments, f"--output_dir={other}", "--num_tokens=1000")
    assert same.returncode == 0
    check_tensors(Path(other, "model.ckpt"), Path(start, "model.ckpt"))


def test_original_words(work):
    """With the masked words back in their places nothing is left of the masks."""
    batch = next(iter(open_records(str(work / "sop"), batch_size=8).batches()))
    words = original_words(batch)
    masked = batch["input_word_ids"].numpy()
    changed = np.zeros_like(words, bool)
    for row, (positions, ids, weights) in enumerate(
        zip(*(batch[f"masked_lm_{name}"].numpy() for name in ("positions", "ids", "weights")))
    ):
        for position, word, weight in zip(positions, ids, weights):
            if weight:
                assert words[row, position] == word
                changed[row, position] = True
    assert changed.any()
    np.testing.assert_array_equal(words[~changed], masked[~changed])
