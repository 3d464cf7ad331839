"""The Python of the documents on fine-tuning, run as it stands with a tiny model and a few rows."""

import functools
import json
import re
from pathlib import Path

import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier
from albert_tf.checkpoints import native
from albert_tf.finetuning import training
from albert_tf.training import DeviceSettings
from data_pipeline.finetuning.examples import Split, TextExample
from tests.finetuning_files import rows, write_files

ROOT = Path(__file__).parents[1]
VOCABULARY = ROOT / "tests" / "goldens" / "hf_tokenizer" / "spiece.model"


@pytest.fixture
def blocks_of(tiny_config, eager, tmp_path, monkeypatch):
    """(document, **others) -> its blocks of Python, with a tiny model in place of the published
    one, runs in tmp_path, and further names of folders replaced.
    """
    plain = functools.partial(DeviceSettings, "one_device", fast="off")  # XLA takes a minute.
    monkeypatch.setattr(training, "DeviceSettings", plain)
    config = tiny_config.replace(
        vocab_size=1000, max_position_embeddings=128, num_hidden_layers=1, hidden_dropout_prob=0.0
    )
    folder = str(tmp_path / "model")
    settings = {"lower": True, "rules": "google"}
    native.save(AlbertClassifier(config, 2), folder, {}, str(VOCABULARY), settings)
    names = {"albert-base-v2": folder, "runs/": f"{tmp_path}/"}

    def read(document: str, **others: object) -> list[str]:
        text = (ROOT / "docs" / document).read_text(encoding="utf-8")
        found = "\n".join(re.findall(r"```python\n.*?```", text, re.S))
        for name, value in {**names, **others}.items():
            assert name in found
            found = found.replace(name, str(value))
        return re.findall(r"```python\n(.*?)```", found, re.S)

    return read


def test_a_benchmark_and_a_task_of_ones_own(blocks_of, tmp_path, capsys):
    sentences = rows("sentence\tlabel", *["good\t1", "bad\t0"] * 16)  # A batch.
    data_dir = write_files(tmp_path, "sst-2", train=sentences)["data_dir"]
    benchmark, mine = blocks_of("finetuning.md", glue=data_dir, my_data="of mine")
    read = []

    def read_mine(data_dir: str, split: str) -> Split:
        read.append((data_dir, split))
        texts = [("the good cat", "yes"), ("the bad cat", "no")] * (16 if split == "train" else 1)
        examples = [
            TextExample(f"{split}-{number}", text, None, label, data_dir, number)
            for number, (text, label) in enumerate(texts, start=1)
        ]
        return Split(split, examples)

    names = {"read_mine": read_mine}
    exec(benchmark, names)
    accuracy = names["results"][0].best.metrics["accuracy"]
    assert capsys.readouterr().out.endswith(f"\n{accuracy}\n") and accuracy in (0.0, 0.5, 1.0)
    exec(mine, names)
    assert read == [("of mine", "train"), ("of mine", "dev")]
    (result,) = json.loads((tmp_path / "mine" / "results.json").read_text())["results"]
    assert (result["task"], result["num_examples"]) == ("mine", 2)
    assert tuple(result["best"]["metrics"]) == ("accuracy", "matthews_corrcoef")
    labels = json.loads((tmp_path / "mine" / "model" / "model.json").read_text())["labels"]
    assert labels == ["no", "yes"]


def test_rows_are_learned(blocks_of, tmp_path, capsys):
    blocks = blocks_of("finetuning_python.md", **{"albert-small-en": tmp_path / "model"})
    texts = [{"text": f"the {word} cat", "label": word} for word in ("good", "bad")] * 16
    names = {"train_rows": texts, "dev_rows": tf.data.Dataset.from_generator(
        lambda: iter(texts[:6]),
        output_signature={name: tf.TensorSpec((), tf.string) for name in ("text", "label")},
    )}  # fmt: skip
    exec(blocks[0], names)
    (result,) = names["results"]
    assert (result.task, result.split, result.num_examples) == ("tsv", "dev", 6)
    assert str(dict(result.best.metrics)) in capsys.readouterr().out
    assert (tmp_path / "mine" / "results.json").exists()


def test_text_is_the_input_of_a_model(blocks_of):
    blocks = blocks_of("finetuning_python.md")
    columns = {"text": ["the cat", "a mat", "of"], "label": [0, 1, 0]}
    names = {"dataset": tf.data.Dataset.from_tensor_slices(columns)}
    exec(blocks[1] + blocks[2], names)
    ((inputs, labels),) = names["inputs"]
    assert inputs["input_word_ids"].shape == (3, 128) and labels.shape == (3,)
    assert names["model"](tf.constant(columns["text"])).shape == (3, 2)
