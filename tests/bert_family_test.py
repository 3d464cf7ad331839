"""BERT, ELECTRA and DistilBERT: other people's folders and checkpoints, read, written and trained.

With PyTorch and transformers in ALBERT_TF_PEERS (benchmarks/make_peer_environments.sh), or as the
interpreter ALBERT_TF_TORCH, `make test-all` compares all classes with models that it makes there.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import albert_tf
from albert_tf.checkpoints import formats
from albert_tf.checkpoints.names import variable_names
from albert_tf.checkpoints.source import Beside
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.variable_names import variable_name

GOLDENS = Path(__file__).parent / "goldens"
FOLDERS = GOLDENS / "hf_bert"
NAMES = ("bert", "bert_classifier", "distilbert", "electra")


def batch() -> dict[str, tf.Tensor]:
    """As goldens/hf_bert/make.py has it."""
    mask = np.ones([3, 14], np.int32)
    mask[1, 9:] = mask[2, 5:] = 0
    types = np.arange(14) >= 6
    return {
        "input_word_ids": tf.constant(np.random.RandomState(1).randint(1, 40, [3, 14])),
        "input_mask": tf.constant(mask),
        "input_type_ids": tf.constant(types * mask),
    }


def answers(model) -> dict[str, tf.Tensor]:
    """A model's outputs by the names that transformers' classes give theirs."""
    inputs = batch()
    if isinstance(model, albert_tf.AlbertPretrainer):
        every = tf.tile(tf.range(14)[None], [3, 1])
        outputs = model({**inputs, "masked_lm_positions": every})
        words = outputs["masked_lm_logits"]
        order = outputs["sentence_order_logits"]
        return {"logits": words, "prediction_logits": words, "seq_relationship_logits": order}
    if isinstance(model, albert_tf.AlbertMultipleChoice):
        inputs = {name: value[None] for name, value in inputs.items()}
    outputs = model(inputs)
    if isinstance(model, albert_tf.AlbertEncoder):
        names = {"last_hidden_state": "sequence_output", "pooler_output": "pooled_output"}
        return {theirs: outputs[ours] for theirs, ours in names.items()}
    if isinstance(model, albert_tf.AlbertReplacedTokenDetector):
        return {"logits": outputs["replaced_logits"]}
    return outputs if isinstance(outputs, dict) else {"logits": outputs}


def largest_difference(model, folder: Path) -> float:
    """Of real tokens, between a model's outputs and those in a folder."""
    found, real = answers(model), batch()["input_mask"].numpy().astype(bool)
    differences = []
    with np.load(folder / "outputs.npz") as expected:
        for name in expected:
            if name.startswith("after/"):
                continue
            difference = np.abs(found[name] - expected[name])
            differences.append(difference[real] if difference.shape[:2] == (3, 14) else difference)
    return max(float(each.max()) for each in differences)


def read(path: Path):
    source = formats.recognize(str(path))
    model = source.make_model(source.config())
    formats.load_whole(model, source)
    return model, source


def check_both_ways(folder: Path, tmp_path: Path) -> None:
    """A folder of transformers: its answers, and those of what is written from it."""
    model, source = read(folder)
    assert largest_difference(model, folder) <= 1e-5
    kind = json.loads((folder / "config.json").read_text())["model_type"]
    written = tmp_path / "written"
    formats.HuggingFace.save(model, str(written), Beside(metadata=source.metadata()))
    assert "tensors as transformers" in formats.HuggingFace.check(model, str(written), "float32")
    config = json.loads((written / "config.json").read_text())
    # What a DistilBERT leaves out a BERT can have, and it is written as one.
    assert config["model_type"] == ("bert" if kind == "distilbert" else kind)
    again, _ = read(written)
    assert type(again) is type(model) and largest_difference(again, folder) <= 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_folders_of_transformers(name, tmp_path):
    check_both_ways(FOLDERS / name, tmp_path)


def theirs() -> str | None:
    """The interpreter that has PyTorch and transformers, if one is known."""
    folder = os.environ.get("ALBERT_TF_PEERS")
    return os.environ.get("ALBERT_TF_TORCH") or (folder and f"{folder}/torch/bin/python")


@pytest.mark.table
@pytest.mark.skipif(theirs() is None, reason="COMPARED WITH GOLDENS ONLY: no ALBERT_TF_PEERS")
def test_every_class_of_transformers(tmp_path):
    """Both GELUs, with and without pooler, each head, shards; and transformers reads what is
    written with no weight missing or left over.
    """
    made = tmp_path / "made"
    subprocess.run([theirs(), FOLDERS / "make.py", made, "--all"], check=True, capture_output=True)
    for folder in sorted(made.iterdir()):
        check_both_ways(folder, tmp_path / folder.name)
    check = """
import json, sys, pathlib, transformers
for folder in pathlib.Path(sys.argv[1]).glob("*/written"):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    _, found = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(found.values()), (folder, found)
"""
    subprocess.run([theirs(), "-c", check, tmp_path], check=True)


def test_six_updates_equal_those_of_pytorch():
    folder = FOLDERS / "bert_classifier"
    model, _ = read(folder)
    optimizer = albert_tf.AdamW(1e-3, bias_correction=True, global_clipnorm=None)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for _ in range(6):
        with tf.GradientTape() as tape:
            value = loss(tf.constant([0, 2, 1]), model(batch()))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, weights), weights))
    rows = variable_names(model, "bert")
    with np.load(folder / "outputs.npz") as expected:
        for weight in model.variables:
            row = rows[variable_name(weight)]
            value = expected[f"after/{row.huggingface}"]
            value = value.T if row.huggingface_transposed else value
            np.testing.assert_allclose(weight, value, atol=1e-4, err_msg=row.ours)


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_checkpoints_of_google_research(kind, tmp_path):
    """An archive of ELECTRA has no configuration, and a generator besides."""
    model, source = read(GOLDENS / "google_bert" / kind)
    with np.load(GOLDENS / "google_bert" / kind / "outputs.npz") as file:
        expected = dict(file)
    real = expected["mask"].astype(bool)
    found = {"sequence": model.encoder(batch())["sequence_output"]}
    if kind == "bert":
        words = answers(model)
        found["pooled"] = model.encoder(batch())["pooled_output"]
        found["masked_lm_logits"] = words["logits"]
        found["next_sentence_logits"] = words["seq_relationship_logits"]
    else:
        found["replaced_logits"] = answers(model)["logits"]
    assert found.keys() == expected.keys() - {"ids", "mask", "types"}
    for name, value in found.items():
        difference = np.abs(value - expected[name])
        difference = difference[real] if difference.shape[:2] == (3, 14) else difference
        assert difference.max() <= 1e-5, name
    written = tmp_path / "written"
    formats.Google.save(model, str(written), Beside(metadata=source.metadata()))
    assert "tensors as google" in formats.Google.check(model, str(written), "float32")
    again, _ = read(written)
    for left, right in zip(
        model.encoder.transformer.variables, again.encoder.transformer.variables
    ):
        np.testing.assert_array_equal(left, right)
    assert again.config == model.config


def test_old_files_say_neither_their_kind_nor_weight(tmp_path):
    """The hub still has config.json files without model_type, and norms with gamma and beta."""
    shutil.copytree(FOLDERS / "bert", tmp_path / "old")
    config = json.loads((tmp_path / "old" / "config.json").read_text())
    old = {
        key: value for key, value in config.items() if key not in ("model_type", "architectures")
    }
    (tmp_path / "old" / "config.json").write_text(json.dumps(old))
    path = tmp_path / "old" / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    ends = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for now, then in ends.items():
        tensors = {name.replace(now, then): value for name, value in tensors.items()}
    safetensors.numpy.save_file(tensors, path)
    model = albert_tf.AlbertPretrainer.from_preset(str(tmp_path / "old"))
    assert largest_difference(model, FOLDERS / "bert") <= 1e-5


@pytest.mark.parametrize("name", ["bert", "electra"])
def test_weights_of_tensorflows_classes(name, tmp_path):
    """Under the names that TFBertForPreTraining and TFElectraForPreTraining gave them."""
    folder = tmp_path / name
    shutil.copytree(FOLDERS / name, folder)
    found = {}
    for each, value in safetensors.numpy.load_file(folder / "model.safetensors").items():
        each = each.replace("cls.seq", "nsp___cls.seq").replace("cls.pred", "mlm___cls.pred")
        words = each.split(".")
        if words[-2:] == ["LayerNorm", "weight"]:
            words[-1] = "gamma"
        elif words[-2:] == ["LayerNorm", "bias"]:
            words[-1] = "beta"
        elif words[-1] == "weight" and not words[-2].endswith("_embeddings"):
            words[-1], value = "kernel", np.ascontiguousarray(value.T)
        elif words[-2] in ("token_type_embeddings", "position_embeddings"):
            words[-1] = "embeddings"
        found["/".join(words).replace("encoder/layer/", "encoder/layer_._") + ":0"] = value
    safetensors.numpy.save_file(found, folder / "model.safetensors")
    model, _ = read(folder)
    assert largest_difference(model, FOLDERS / name) <= 1e-5


def test_a_classifier_begins_with_an_encoder_without_a_pooler(capfd):
    model = albert_tf.AlbertClassifier.from_preset(str(FOLDERS / "electra"), num_classes=5)
    assert model(batch()).shape == (3, 5)
    assert "new: encoder/pooler/kernel" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "roberta"}, "'roberta', not one of .*: its positions begin at 2"),
        ({"model_type": "deberta-v2"}, "its attention has relative positions"),
        ({"model_type": "xlnet"}, "relative positions and permutations"),
        ({"is_decoder": True}, "is_decoder True is not supported, only false"),
        ({"hidden_act": "silu"}, "hidden_act 'silu' is not one of"),
        ({"architectures": ["BertLMHeadModel"]}, "'BertLMHeadModel' is not one of BertFor"),
    ],
)
def test_what_is_refused(changes, message, tmp_path):
    shutil.copytree(FOLDERS / "bert", tmp_path / "changed")
    path = tmp_path / "changed" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(UserError, match=message):
        read(tmp_path / "changed")
