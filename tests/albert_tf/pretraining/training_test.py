"""Pre-training from Python: the example of the documentation, and the same bits as the program."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining import open_records, pretrain
from albert_tf.training import LoopSettings, OptimizerSettings, RunSettings

ROOT = Path(__file__).parents[3]

# What makes the documented example short: smaller, fewer.
SHORTENED = {
    '"albert-small"': '"albert-tiny"',
    "batch_size=64": "batch_size=8",
    "num_warmup_steps=1_000": "num_warmup_steps=1",
    "num_train_steps=20_000": "num_train_steps=4",
    '"records/train"': '"sop"',
    '"records/heldout"': '"nsp"',
}


def test_the_documented_lines(work, tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(list(filter(None, program.splitlines()))) <= 10
    for long, short in SHORTENED.items():
        assert long in program
        program = program.replace(long, short)
    for name in ("sop", "nsp"):
        (tmp_path / name).symlink_to(work / name)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/training.md", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.startswith("Pre-training\n") and "Held-out evaluation on nsp" in shown
    assert 0 <= float(shown.splitlines()[-1]) <= 1
    assert native.read_metadata("runs/small/model")["task"] == "pretraining"


def weights(folder: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(folder / "model" / native.WEIGHTS_PREFIX))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_the_program_does_the_same(work, tmp_path, run_program, pretraining_command, fast_choice):
    """With dropout and dynamic masks, bit for bit."""
    _, _, module, *arguments = pretraining_command()
    with pytest.raises(SystemExit) as end:
        run_program(module, *arguments)
    assert not end.value.code
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    data = open_records(str(work / "sop"), batch_size=8)
    model = AlbertPretrainer(AlbertConfig.from_json_file(str(work / "config.json")))
    settings = RunSettings(
        str(tmp_path / "python"), OptimizerSettings("lamb", 0.02, 2), LoopSettings(12, 2, 4)
    )
    assert pretrain(model, data, settings) == {}
    expected, found = weights(tmp_path / "run"), weights(tmp_path / "python")
    assert sorted(expected) == sorted(found)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
