"""The files that hold a folder's weights: one, several, or those of TensorFlow's classes."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf.checkpoints import formats

GOLDENS = Path(__file__).parents[2] / "goldens"
TENSORFLOW = GOLDENS / "hf_tensorflow"
IDS = tf.range(10)[None] * 3


@pytest.fixture
def convert(result_of, tmp_path):
    """A folder -> what `convert` says of making a native one, tmp_path / "out", of it."""

    def run(folder: Path):
        arguments = [f"--input={folder}", f"--output={tmp_path}/out", "--format=native"]
        return result_of("albert_tf.convert", *arguments)

    return run


def answers(folder: Path) -> dict[str, np.ndarray]:
    """The logits of a model folder, by the names that transformers has for them."""
    source = formats.recognize(str(folder))
    model = source.make_model(source.config())
    assert not source.load(model)
    if hasattr(model, "num_classes"):
        return {"logits": model({"input_word_ids": IDS})}
    found = model({"input_word_ids": IDS, "masked_lm_positions": tf.range(10)[None]})
    return {
        "prediction_logits": found["masked_lm_logits"],
        "sop_logits": found["sentence_order_logits"],
    }


@pytest.mark.parametrize("name", ["pretraining", "pretraining_h5", "classifier"])
def test_tensorflows_own_folders(convert, tmp_path, name):
    result = convert(TENSORFLOW / name)
    assert result.returncode == 0 and "random" not in result.stdout, result.stderr
    with np.load(TENSORFLOW / "outputs.npz") as golden:
        for kind, value in answers(tmp_path / "out").items():
            expected = golden[f"{name.removesuffix('_h5')}/{kind}"]
            np.testing.assert_allclose(value, expected, atol=1e-5)


def shard(folder: Path, number: int = 3) -> dict[str, str]:
    """Distributes the weights over several files, with an index, which is returned."""
    path = folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    path.unlink()
    places = {}
    for part in range(number):
        name = f"model-{part + 1:05}-of-{number:05}.safetensors"
        held = {key: tensors[key] for key in sorted(tensors)[part::number]}
        safetensors.numpy.save_file(held, folder / name, {"format": "pt"})
        places.update(dict.fromkeys(held, name))
    write_index(folder, places)
    return places


def write_index(folder: Path, places: object) -> None:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))


@pytest.fixture
def sharded(tmp_path):
    shutil.copytree(GOLDENS / "hf_tiny" / "pretraining", tmp_path / "in")
    return tmp_path / "in"


def test_weights_in_several_files(convert, sharded, tmp_path):
    before = answers(sharded)
    places = shard(sharded)
    files = formats.recognize(str(sharded)).weights_files
    assert files == sorted(str(sharded / name) for name in set(places.values()))
    assert convert(sharded).returncode == 0
    for name, value in answers(tmp_path / "out").items():
        np.testing.assert_array_equal(value, before[name])


def test_several_files_of_tensorflows_classes(convert, tmp_path):
    """There the index has the model's name before those of its weights, and the files have not."""
    folder = tmp_path / "in"
    shutil.copytree(TENSORFLOW / "pretraining", folder)
    places = shard(folder)
    write_index(folder, {f"tf_albert/{name}": file for name, file in places.items()})
    assert convert(folder).returncode == 0


FIRST = "model-00001-of-00003.safetensors"


def missing(folder: Path) -> None:
    shard(folder)
    (folder / FIRST).unlink()


def twice(folder: Path) -> None:
    shard(folder)
    shutil.copy(folder / "model-00002-of-00003.safetensors", folder / FIRST)


def unlisted(folder: Path) -> None:
    places = shard(folder)
    write_index(folder, {name: file for name, file in places.items() if name != "predictions.bias"})


def elsewhere(folder: Path) -> None:
    write_index(folder, dict.fromkeys(shard(folder), "../x.safetensors"))


def empty(folder: Path) -> None:
    shard(folder)
    (folder / "model.safetensors.index.json").write_text("{}")


def flax(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "flax_model.msgpack")


def damaged_h5(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "tf_model.h5")


def other_h5(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with h5py.File(folder / "tf_model.h5", "w") as file:
        file["x"] = np.zeros(3)


def folder_instead(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (missing, f"names {FIRST}, which is missing. Copy it there"),
        (twice, f"{FIRST} and model.safetensors.index.json disagree on the place of "),
        (unlisted, "disagree on the place of predictions.bias"),
        (elsewhere, "has no weight_map from weights to files in its folder"),
        (empty, "has no weight_map"),
        (flax, "msgpack cannot be read"),
        (damaged_h5, "h5 is damaged or"),
        (other_h5, "tf_model.h5 is damaged or not a Keras file"),
        (folder_instead, "model.safetensors is a folder, not a file"),
    ],
)
def test_files_that_cannot_be_read_name_the_remedy(convert, sharded, spoil, message):
    """A folder without weights, or with pickles alone: huggingface_test.py."""
    spoil(sharded)
    result = convert(sharded)
    assert result.returncode == 2 and message in result.stderr
    assert result.stderr.count("\n") == 1


def test_safetensors_count_where_there_is_an_h5(convert, sharded):
    (sharded / "tf_model.h5").write_bytes(b"damaged")
    assert convert(sharded).returncode == 0
