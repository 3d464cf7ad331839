"""The lists of each software's tensors equal files that it wrote itself, and find what is wrong."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import (
    AlbertClassifier,
    AlbertReplacedTokenDetector,
    AlbertSpanLabelerV2,
    AlbertTokenClassifier,
)
from albert_tf.checkpoints import google, huggingface, native, target_tensors
from albert_tf.errors import UserError
from albert_tf.models import AlbertSpanPretrainer

GOLDENS = Path(__file__).parents[2] / "goldens"
EQUAL_SIZES = GOLDENS / "hf_tiny_equal"
PROJECTION = "albert.encoder.embedding_hidden_mapping_in"


def tensors(folder: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(folder / "model.safetensors")


@pytest.mark.parametrize(
    "folder",
    sorted(path.parent for path in GOLDENS.glob("hf_tiny*/*/config.json")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_the_list_of_hugging_faces_tensors_equals_its_files(folder):
    config = json.loads((folder / "config.json").read_text())
    shapes = {name: list(value.shape) for name, value in tensors(folder).items()}
    assert target_tensors.huggingface_tensors(config) == shapes


@pytest.mark.parametrize(
    ("name", "count"), [("google_tiny", 32), ("google_tiny_groups", 80), ("google_tiny_equal", 62)]
)
def test_the_list_of_googles_variables_equals_its_checkpoints(name, count):
    prefix, config = (str(GOLDENS / name / file) for file in ("model.ckpt", "albert_config.json"))
    assert target_tensors.check_google(prefix, config, "AlbertPretrainer", 2) == count


@pytest.mark.parametrize("kind", native.MODELS.values(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("embedding_size", [8, 16])
def test_every_head_is_written_as_its_software_has_it(tiny_config, tmp_path, kind, embedding_size):
    config = tiny_config.replace(embedding_size=embedding_size)
    with_classes = kind in (AlbertClassifier, AlbertTokenClassifier)
    model = kind(config, 3) if with_classes else kind(config)
    unknown = (AlbertReplacedTokenDetector, AlbertSpanPretrainer)  # Neither has all of their heads.
    if kind not in (AlbertTokenClassifier, *unknown):  # google-research has none.
        google.save(model, str(tmp_path / "model.ckpt"))
        config.to_json_file(str(tmp_path / "albert_config.json"))
        prefix, path = (str(tmp_path / name) for name in ("model.ckpt", "albert_config.json"))
        target_tensors.check_google(prefix, path, kind.__name__, 3)
    if kind not in (AlbertSpanLabelerV2, *unknown):  # Hugging Face has none.
        huggingface.save(model, str(tmp_path))
        target_tensors.check_huggingface(str(tmp_path))


def test_a_file_that_lacks_a_tensor_is_found(tmp_path):
    """As it was when conversion left out a layer that its own table did not have."""
    shutil.copy(EQUAL_SIZES / "identity" / "config.json", tmp_path)
    values = tensors(EQUAL_SIZES / "identity")
    del values[f"{PROJECTION}.weight"]
    values["albert.pooler.bias"] = values["albert.pooler.bias"].astype(np.float16)
    values["surplus"] = np.zeros(3, np.float32)
    safetensors.numpy.save_file(values, tmp_path / "model.safetensors")
    with pytest.raises(UserError) as error:
        target_tensors.check_huggingface(str(tmp_path))
    assert str(error.value).splitlines()[1:] == [
        f"  missing: {PROJECTION}.weight",
        "  unknown: surplus",
        "  albert.pooler.bias: not float32 of shape [32], but [32]",
    ]
