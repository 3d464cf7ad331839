"""The Python of docs/finetuning_python.md, run as it stands with a tiny model and a few rows."""

import functools
import re
from pathlib import Path

import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier
from albert_tf.checkpoints import native
from albert_tf.finetuning import training
from albert_tf.training import DeviceSettings

ROOT = Path(__file__).parents[1]
VOCABULARY = ROOT / "tests" / "goldens" / "hf_tokenizer" / "spiece.model"


@pytest.fixture
def blocks(tiny_config, tmp_path):
    """The blocks of Python, with a tiny model in place of the published one."""
    config = tiny_config.replace(
        vocab_size=1000, max_position_embeddings=128, num_hidden_layers=1, hidden_dropout_prob=0.0
    )
    folder = str(tmp_path / "model")
    settings = {"lower": True, "rules": "google"}
    native.save(AlbertClassifier(config, 2), folder, {}, str(VOCABULARY), settings)
    text = (ROOT / "docs" / "finetuning_python.md").read_text(encoding="utf-8")
    text = text.replace("albert-base-v2", folder).replace("runs/mine", str(tmp_path / "run"))
    return re.findall(r"```python\n(.*?)```", text, re.S)


def test_rows_are_learned(blocks, tmp_path, capsys, monkeypatch):
    plain = functools.partial(DeviceSettings, "one_device", fast="off")  # XLA takes a minute.
    monkeypatch.setattr(training, "DeviceSettings", plain)
    rows = [{"text": f"the {word} cat", "label": word} for word in ("good", "bad")] * 16
    names = {"train_rows": rows, "dev_rows": tf.data.Dataset.from_generator(
        lambda: iter(rows[:6]),
        output_signature={name: tf.TensorSpec((), tf.string) for name in ("text", "label")},
    )}  # fmt: skip
    exec(blocks[0], names)
    (result,) = names["results"]
    assert (result.task, result.split, result.num_examples) == ("tsv", "dev", 6)
    assert str(dict(result.best.metrics)) in capsys.readouterr().out
    assert (tmp_path / "run" / "results.json").exists()


def test_text_is_the_input_of_a_model(blocks):
    rows = {"text": ["the cat", "a mat", "of"], "label": [0, 1, 0]}
    names = {"dataset": tf.data.Dataset.from_tensor_slices(rows)}
    exec(blocks[1] + blocks[2], names)
    ((inputs, labels),) = names["inputs"]
    assert inputs["input_word_ids"].shape == (3, 128) and labels.shape == (3,)
    assert names["model"](tf.constant(rows["text"])).shape == (3, 2)
