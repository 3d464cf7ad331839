"""Weights of other classes, and of other versions of the reference, as a start of every model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import albert_tf
from albert_tf.checkpoints import bundle, formats, huggingface
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from tests import run_results
from tests.conformance_cases import CLASSES, MODELS, SMALLEST, assert_equal

GOOGLE = Path(__file__).parent / "goldens" / "google_tiny"
POOLER = ("albert.pooler.weight", "albert.pooler.bias")
NEW_POOLER = "new: encoder/pooler/kernel, encoder/pooler/bias"


@pytest.fixture
def masked_lm(few_words, tmp_path) -> Path:
    """The folder of a Hugging Face AlbertForMaskedLM, which has no pooler, and its vocabulary."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(few_words))]
    config = SMALLEST.replace(vocab_size=len(pieces))
    folder = tmp_path / "masked_lm"
    huggingface.save(albert_tf.AlbertPretrainer(config), str(folder))
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    keep(folder, "AlbertForMaskedLM", lambda name: name not in POOLER and "sop_" not in name)
    return folder


def keep(folder: Path, architecture: str, wanted: Callable[[str], bool]) -> None:
    """Makes a folder one of another of Hugging Face's classes, with fewer weights."""
    values = safetensors.numpy.load_file(folder / "model.safetensors")
    values = {name: value for name, value in values.items() if wanted(name)}
    safetensors.numpy.save_file(values, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = [architecture]
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("model_class", MODELS, ids=lambda model: model.__name__)
def test_every_model_begins_without_a_pooler(model_class, masked_lm, capfd):
    classes = {"num_classes": CLASSES} if "Classifier" in model_class.__name__ else {}
    model = model_class.from_preset(str(masked_lm), name="mine", **classes)
    assert type(model) is model_class and model.name == "mine"
    assert NEW_POOLER in capfd.readouterr().err
    stored = safetensors.numpy.load_file(masked_lm / "model.safetensors")
    encoder = getattr(model, "encoder", model)
    words = stored["albert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(encoder.embeddings.word_embeddings, words)
    if model_class is albert_tf.AlbertPretrainer:
        bias = stored["predictions.dense.weight"].T
        np.testing.assert_array_equal(model.masked_lm.transform.kernel, bias)


def test_masks_are_filled_and_sentences_compared_without_a_pooler(masked_lm):
    (best,) = albert_tf.MaskFiller(str(masked_lm))("the cat sat on a [MASK]", top_k=3)
    assert len(best) == 3
    assert albert_tf.SentenceEmbedder(str(masked_lm))(["the cat"]).shape == (1, 16)
    keep(masked_lm, "AlbertModel", lambda name: name.startswith("albert."))
    assert albert_tf.SentenceEmbedder(str(masked_lm))(["the cat"]).shape == (1, 16)
    with pytest.raises(UserError, match="(?s)missing: predictions.dense.weight.*lacks a part") as e:
        albert_tf.MaskFiller(str(masked_lm))
    assert len(str(e.value).splitlines()) < 10


def test_a_classifier_without_its_pooler_is_not_converted(masked_lm, result_of, tmp_path):
    config = huggingface.read_config(str(masked_lm))
    huggingface.save(albert_tf.AlbertClassifier(config, 2), str(tmp_path / "classifier"))
    folder = tmp_path / "classifier"
    keep(folder, "AlbertForSequenceClassification", lambda name: name not in POOLER)
    flags = (f"--input={folder}", f"--output={tmp_path / 'out'}")
    result = result_of("albert_tf.convert", *flags, "--format=native")
    assert result.returncode == 2 and not (tmp_path / "out").exists()
    assert "classifier lacks encoder/pooler/kernel" in result.stderr


def test_fine_tuning_begins_without_a_pooler(masked_lm, eager, result_of, tmp_path):
    rows = "text\tlabel\nthe cat\ta\nold dog\tb\n"
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text(rows)
    result = result_of(
        "albert_tf.run_finetuning",
        *("--task=tsv", f"--init_checkpoint={masked_lm}", f"--output_dir={tmp_path / 'run'}"),
        *(f"--{name}_file={tmp_path / name}.tsv" for name in ("train", "dev")),
        *("--max_seq_length=16", "--train_batch_size=2", "--num_train_steps=1", "--fast=off"),
        *("--learning_rate=0.001", "--distribution=one_device"),
    )
    assert result.returncode == 0, result.stderr
    assert NEW_POOLER in result.stderr


Tensors = dict[str, np.ndarray]


@pytest.fixture
def google(tmp_path) -> Callable[[Tensors], str]:
    """Tensors by the reference's names -> the prefix of a checkpoint of them."""

    def write(tensors: Mapping[str, np.ndarray]) -> str:
        config = (GOOGLE / "albert_config.json").read_text()
        (tmp_path / "albert_config.json").write_text(config)
        bundle.write(str(tmp_path / "model.ckpt"), tensors)
        return str(tmp_path / "model.ckpt")

    return write


@pytest.fixture
def tensors() -> Tensors:
    return run_results.tensors(GOOGLE / "model.ckpt")


def loaded(prefix: str, use_averages: bool = False) -> list[np.ndarray]:
    source = dataclasses.replace(formats.recognize(prefix), use_averages=use_averages)
    model = source.make_model(source.config())
    assert not source.load(model)
    return model.get_weights()


def test_slots_of_tensorflows_optimizers_are_no_weights(google, tensors):
    expected = loaded(google(tensors))
    weights = [name for name in tensors if name.startswith(("bert/", "cls/"))]
    for slot in ("Adam", "Adam_1", "Momentum", "RMSProp", "Ftrl_1", "lamb_m"):
        tensors |= {f"{name}/{slot}": tensors[name] + 1 for name in weights}
    tensors |= {"beta1_power": np.float32(0.9), "beta2_power": np.float32(0.99)}
    tensors["global_step"] = np.int64(3)
    assert_equal(loaded(google(tensors)), expected)


def test_averages_are_read_where_they_are_asked_for(google, tensors, capfd):
    expected = loaded(google(tensors))
    with pytest.raises(UserError, match="holds no averages"):
        loaded(google(tensors), use_averages=True)
    weights = [name for name in tensors if name.startswith(("bert/", "cls/"))]
    tensors |= {f"{name}/ExponentialMovingAverage": tensors[name] + 1 for name in weights}
    prefix = google(tensors)
    capfd.readouterr()
    assert_equal(loaded(prefix), expected)
    assert "convert --use_averages" in capfd.readouterr().err
    for left, right in zip(loaded(prefix, use_averages=True), expected, strict=True):
        np.testing.assert_array_equal(left, right + 1)


def test_norms_that_keras_made(google, tensors):
    expected = loaded(google(tensors))
    renamed = {
        name.replace("bert/embeddings/LayerNorm", "bert/embeddings/layer_normalization").replace(
            "transform/LayerNorm", "transform/layer_normalization_25"
        ): value
        for name, value in tensors.items()
    }
    assert renamed.keys() != tensors.keys()
    assert_equal(loaded(google(renamed)), expected)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bert/encoder/layer_shared/attention/self/query/kernel", "brightmart/albert_zh"),
        (
            "bert/encoder/transformer/group_0_2/layer_2/inner_group_0/layer_normalization_5/beta",
            "a separate norm",
        ),
    ],
)
def test_models_that_are_not_this_albert_are_named(google, tensors, name, said):
    prefix = google({**tensors, name: np.zeros([2], np.float32)})
    with pytest.raises(UserError, match=f"it has {name}.*{said}") as error:
        loaded(prefix)
    assert "\n" not in str(error.value)


def test_messages_name_the_cause(google, tensors):
    """The configuration is what to change only where another one would fit."""
    config = AlbertConfig.from_json_file(str(GOOGLE / "albert_config.json"))
    prefix = google(tensors)
    wider = albert_tf.AlbertPretrainer(config.replace(hidden_size=2 * config.hidden_size))
    with pytest.raises(UserError, match="(?s)misshapen.*Pass the configuration") as error:
        formats.recognize(prefix).load(wider)
    assert len(str(error.value).splitlines()) < 10
    with pytest.raises(UserError, match="(?s)missing.*Pass the configuration"):
        model = albert_tf.AlbertPretrainer(config.replace(num_hidden_groups=2))
        formats.recognize(prefix).load(model)
    with pytest.raises(UserError, match="(?s)missing: output_weights.*lacks a part"):
        formats.recognize(prefix).load(albert_tf.AlbertClassifier(config, 2))
    with pytest.raises(UserError, match="(?s)unused: cls/.*parts that this model lacks"):
        formats.recognize(prefix).load(albert_tf.AlbertEncoder(config))


def test_convert_reads_averages_and_the_head_of_race(result_of, google, tensors, tmp_path):
    tensors = {name: value for name, value in tensors.items() if name.startswith("bert/")}
    hidden = tensors["bert/pooler/dense/bias"].shape[0]
    tensors |= {"output_weights": np.ones([1, hidden], np.float32), "output_bias": np.ones(1, "f4")}
    averages = {f"{name}/ExponentialMovingAverage": each + 1 for name, each in tensors.items()}

    def convert(prefix: str, name: str, *arguments: str):
        output = tmp_path / name
        return result_of(
            "albert_tf.convert",
            *(f"--input={prefix}", f"--output={output}", "--format=native", *arguments),
        )

    said = convert(google(tensors), "guess")
    assert said.returncode == 0 and "is read as a regression" in said.stderr
    refused = convert(str(tmp_path / "guess"), "refused", "--head=regression")
    assert refused.returncode == 2 and "--head=regression: only for" in refused.stderr
    race = convert(google(tensors | averages), "race", "--head=multiple_choice", "--use_averages")
    assert race.returncode == 0 and "AlbertMultipleChoice" in race.stdout, race.stderr
    source = formats.recognize(str(tmp_path / "race"))
    model = source.make_model(source.config())
    source.load(model)
    np.testing.assert_array_equal(
        model.encoder.embeddings.word_embeddings, tensors["bert/embeddings/word_embeddings"] + 1
    )
