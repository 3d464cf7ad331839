"""Every head equals Hugging Face's own, and what is written has exactly its names and values."""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from albert_tf import (
    AlbertClassifier,
    AlbertConfig,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertSpanLabeler,
    AlbertTokenClassifier,
)
from albert_tf.checkpoints import huggingface

GOLDEN = Path(__file__).parents[1] / "goldens" / "hf_tiny"
MODELS = {
    "pretraining": AlbertPretrainer,
    "sequence_classification": lambda config: AlbertClassifier(config, 3),
    "question_answering": AlbertSpanLabeler,
    "token_classification": lambda config: AlbertTokenClassifier(config, 3),
    "multiple_choice": AlbertMultipleChoice,
}
every_head = pytest.mark.parametrize("head", MODELS)


def load(head: str):
    model = MODELS[head](AlbertConfig.from_json_file(str(GOLDEN / head / "config.json")))
    kept = huggingface.load(model, str(GOLDEN / head))
    assert all(name.startswith("encoder/pooler/") for name in kept)
    return model


def read(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / name) as file:
        return dict(file)


def batch() -> dict[str, tf.Tensor]:
    inputs = read("inputs.npz")
    names = {
        "input_word_ids": "input_ids",
        "input_mask": "attention_mask",
        "input_type_ids": "token_type_ids",
    }
    return {ours: tf.constant(inputs[theirs], tf.int32) for ours, theirs in names.items()}


@pytest.mark.usefixtures("plain_and_fast")
@every_head
def test_outputs(head):
    model, inputs, golden = load(head), batch(), read("outputs.npz")
    expected = {
        name.split("/")[1]: value for name, value in golden.items() if name.startswith(f"{head}/")
    }
    real = inputs["input_mask"].numpy()[..., None]
    if head == "multiple_choice":
        hidden = model.encoder({name: value[:2] for name, value in inputs.items()})
        inputs = {name: value[None, :2] for name, value in inputs.items()}
        real = real[:2]
    else:
        hidden = model.encoder(inputs)
    sequence = hidden["sequence_output"] * real
    np.testing.assert_allclose(sequence, expected["last_hidden_state"] * real, atol=1e-5)
    if head == "pretraining":
        positions = tf.tile(tf.range(14)[None], [3, 1])
        outputs = model({**inputs, "masked_lm_positions": positions})
        pairs = [
            (outputs["masked_lm_logits"] * real, expected["prediction_logits"] * real),
            (outputs["sentence_order_logits"], expected["sop_logits"]),
        ]
    elif head == "question_answering":
        outputs, real = model(inputs), real[..., 0]
        names = ("start_logits", "end_logits")
        pairs = [(outputs[name] * real, expected[name] * real) for name in names]
    elif head == "token_classification":
        pairs = [(model(inputs) * real, expected["logits"] * real)]
    else:
        pairs = [(model(inputs), expected["logits"])]
    for value, reference in pairs:
        np.testing.assert_allclose(value, reference, atol=1e-5)


@every_head
def test_written_files_equal_theirs(head, tmp_path):
    huggingface.save(load(head), str(tmp_path))
    written = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    theirs = safetensors.numpy.load_file(GOLDEN / head / "model.safetensors")
    assert set(written) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_array_equal(written[name], value)
    config = json.loads((GOLDEN / head / "config.json").read_text())
    for name in ("dtype", "transformers_version"):
        del config[name]
    ours = json.loads((tmp_path / "config.json").read_text())
    if head in ("sequence_classification", "token_classification"):
        assert ours.pop("classifier_dropout_prob") == 0.1
    else:
        assert "classifier_dropout_prob" not in ours
    config.pop("classifier_dropout_prob")
    assert ours == config
