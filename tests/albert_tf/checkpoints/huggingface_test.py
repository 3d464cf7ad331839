"""Hugging Face folders: what is written, what is read, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import models
from albert_tf.checkpoints import huggingface
from albert_tf.checkpoints.huggingface_weights import HuggingFaceWeights
from albert_tf.errors import UserError
from albert_tf.models import AlbertEncoder
from tests.conformance_cases import assert_equal

PROJECTION = "albert.encoder.embedding_hidden_mapping_in"


def tensors(folder: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(folder / "model.safetensors")


def rewrite(folder: Path, **changes: np.ndarray | None) -> None:
    """Other tensors; None removes one. Names with "." for "__"."""
    values = tensors(folder)
    for name, value in changes.items():
        name = name.replace("__", ".")
        values.pop(name, None)
        if value is not None:
            values[name] = value
    safetensors.numpy.save_file(values, folder / "model.safetensors")


def test_a_classifier_is_written_and_read(tiny_config, tmp_path):
    model = models.AlbertClassifier(tiny_config, 3, dropout_rate=0.25)
    huggingface.save(model, str(tmp_path), labels=["x", "y", "z"])
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert config["classifier_dropout_prob"] == 0.25 and config["hidden_size"] == 16
    assert config["id2label"] == {"0": "x", "1": "y", "2": "z"}
    assert config["label2id"] == {"x": 0, "y": 1, "z": 2}
    kernel = model.classification.logits.kernel.numpy()
    np.testing.assert_array_equal(tensors(tmp_path)["classifier.weight"], kernel.T)
    copy = huggingface.make_model(str(tmp_path), huggingface.read_config(str(tmp_path)))
    assert copy.get_config() == {**model.get_config()}
    assert huggingface.load(copy, str(tmp_path)) == []
    assert_equal(model.variables, copy.variables)


def test_classes_without_names(tiny_config, tmp_path):
    huggingface.save(models.AlbertTokenClassifier(tiny_config, 2), str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["label2id"] == {"LABEL_0": 0, "LABEL_1": 1}
    huggingface.save(AlbertEncoder(tiny_config), str(tmp_path))
    assert "id2label" not in json.loads((tmp_path / "config.json").read_text())


@pytest.mark.parametrize(
    ("make", "architecture"),
    [
        (AlbertEncoder, "AlbertModel"),
        (models.AlbertPretrainer, "AlbertForPreTraining"),
        (models.AlbertMultipleChoice, "AlbertForMultipleChoice"),
        (models.AlbertSpanLabeler, "AlbertForQuestionAnswering"),
        (lambda config: models.AlbertTokenClassifier(config, 2), "AlbertForTokenClassification"),
    ],
)
def test_the_architecture_names_the_model(tiny_config, tmp_path, make, architecture):
    model = make(tiny_config)
    huggingface.save(model, str(tmp_path))
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [architecture]
    assert type(huggingface.make_model(str(tmp_path), tiny_config)) is type(model)


def test_other_architectures(tiny_config, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architectures": ["AlbertForMaskedLM"]}))
    made = huggingface.make_model(str(tmp_path), tiny_config)
    assert isinstance(made, models.AlbertPretrainer)
    path.write_text(json.dumps({"architectures": ["AlbertForSequenceClassification"]}))
    made = huggingface.make_model(str(tmp_path), tiny_config)
    assert (made.num_classes, made.dropout_rate) == (2, 0.1)
    path.write_text("{}")
    assert isinstance(huggingface.make_model(str(tmp_path), tiny_config), AlbertEncoder)
    path.write_text(json.dumps({"architectures": ["BertLMHeadModel"]}))
    with pytest.raises(UserError, match="architecture 'BertLMHeadModel' is not one of AlbertFor"):
        huggingface.make_model(str(tmp_path), tiny_config)


def test_an_encoder_alone_has_no_prefix(tiny_config, tmp_path):
    encoder = AlbertEncoder(tiny_config)
    huggingface.save(encoder, str(tmp_path))
    assert not any(name.startswith("albert.") for name in tensors(tmp_path))
    weights = HuggingFaceWeights(str(tmp_path))
    assert all(name.startswith("albert.") for name in weights.shapes)
    np.testing.assert_array_equal(
        weights.read("albert.pooler.weight"), encoder.pooler.kernel.numpy().T
    )


def test_copies_and_buffers_are_left_out_and_halves_are_read_as_float32(tiny_config, tmp_path):
    model = models.AlbertPretrainer(tiny_config)
    huggingface.save(model, str(tmp_path))
    bias = np.arange(50, dtype=np.float16)
    rewrite(
        tmp_path,
        predictions__decoder__weight=model.encoder.embeddings.word_embeddings.numpy(),
        predictions__decoder__bias=bias,
        albert__embeddings__position_ids=np.zeros([1, 16], np.int64),
        predictions__bias=bias,
    )
    assert huggingface.load(model, str(tmp_path)) == []
    np.testing.assert_array_equal(model.masked_lm.output_bias, np.float32(bias))
    assert HuggingFaceWeights(str(tmp_path)).read("predictions.bias").dtype == "float32"


def test_bfloat16_is_read_and_what_is_no_weight_is_named(tiny_config, tmp_path):
    values = np.arange(4, dtype=np.float32)
    half = (values.view(np.uint32) >> 16).astype(np.uint16)  # bfloat16 is the upper half.
    for dtype, data in (("BF16", half.tobytes()), ("F8_E5M2", b"abcd")):
        tensor = {"dtype": dtype, "shape": [4], "data_offsets": [0, len(data)]}
        header = json.dumps({"albert.pooler.bias": tensor}).encode()
        content = len(header).to_bytes(8, "little") + header + data
        (tmp_path / huggingface.WEIGHTS_FILE).write_bytes(content)
        if dtype == "BF16":
            found = HuggingFaceWeights(str(tmp_path)).read("albert.pooler.bias")
            np.testing.assert_array_equal(found, values)
    with pytest.raises(UserError, match="bias has type F8_E5M2; expected one of BF16, F16"):
        HuggingFaceWeights(str(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        {f"{PROJECTION}.bias": np.float32([0] * 15 + [1e-7])},
        {f"{PROJECTION}.weight": np.float32(np.eye(16) + 1e-7 * np.eye(16, k=1))},
    ],
    ids=["bias", "kernel"],
)
def test_what_is_more_than_the_identity(tiny_config, tmp_path, change):
    config = tiny_config.replace(embedding_size=16)
    huggingface.save(models.AlbertPretrainer(config), str(tmp_path))
    rewrite(tmp_path, **{name.replace(".", "__"): value for name, value in change.items()})
    assert huggingface.read_config(str(tmp_path)).always_project_embeddings
    with pytest.raises(UserError, match="is not the identity.*always_project_embeddings"):
        huggingface.load(models.AlbertPretrainer(config), str(tmp_path))


def test_no_pickle_is_loaded(tiny_config, tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path} holds none of model.safetensors"):
        huggingface.load(AlbertEncoder(tiny_config), str(tmp_path))
    for name in ("a.pth", "b.pt", "pytorch_model.bin"):
        (tmp_path / name).touch()
        with pytest.raises(UserError, match=f"holds {name}, a pickle, .* never loaded here"):
            huggingface.load(AlbertEncoder(tiny_config), str(tmp_path))
        (tmp_path / name).unlink()


def test_a_damaged_file(tiny_config, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"no such thing")
    with pytest.raises(UserError, match="is damaged or not a safetensors file: .* Copy it again"):
        huggingface.load(AlbertEncoder(tiny_config), str(tmp_path))


def test_a_model_without_counterpart(tiny_config, tmp_path):
    model = models.AlbertSpanLabelerV2(tiny_config)
    huggingface.save(AlbertEncoder(tiny_config), str(tmp_path))
    for work in (huggingface.save, huggingface.load):
        with pytest.raises(UserError, match="has no class .* for AlbertSpanLabelerV2"):
            work(model, str(tmp_path))


def test_rates_of_dropout(tiny_config, tmp_path):
    """Null is the encoder's."""
    config = tiny_config.replace(hidden_dropout_prob=0.3)
    huggingface.save(models.AlbertTokenClassifier(config, 2), str(tmp_path))
    path = tmp_path / "config.json"

    def read_with(rate: object) -> models.AlbertTokenClassifier:
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "classifier_dropout_prob": rate})
        )
        return huggingface.make_model(str(tmp_path), huggingface.read_config(str(tmp_path)))

    assert read_with(None).dropout_rate == 0.3
    assert read_with(0).dropout_rate == 0
    for rate in ("high", [0.1], 1, -0.1):
        with pytest.raises(UserError, match=r"classifier_dropout_prob must be a probability in"):
            read_with(rate)
