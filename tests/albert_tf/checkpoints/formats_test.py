"""What lies at a path is found out by its files, and loaded whatever it is."""

from __future__ import annotations

import numpy as np
import pytest

from albert_tf.checkpoints import bundle, formats, google, huggingface, native
from albert_tf.checkpoints.kerashub import KerasHub
from albert_tf.checkpoints.source import Beside
from albert_tf.checkpoints.weights import Allowed
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertEncoder, AlbertPretrainer
from albert_tf.pretrained.loading import locate
from tests.conformance_cases import assert_equal


@pytest.fixture
def folders(tiny_config, tmp_path):
    """One folder of each format, with the weights of one model."""
    model = AlbertPretrainer(tiny_config)
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    native.save(model, str(tmp_path / "native"), {}, str(tmp_path / "vocab.txt"), {})
    huggingface.save(model, str(tmp_path / "huggingface"))
    (tmp_path / "huggingface" / "spiece.model").touch()
    KerasHub.save(model, str(tmp_path / "kerashub"), Beside())
    (tmp_path / "kerashub" / "assets" / "tokenizer").mkdir(parents=True)
    (tmp_path / "kerashub" / "assets" / "tokenizer" / "vocabulary.spm").touch()
    (tmp_path / "google").mkdir()
    google.save(model, str(tmp_path / "google" / "model.ckpt-best"))
    tiny_config.to_json_file(str(tmp_path / "google" / "albert_config.json"))
    (tmp_path / "google" / "30k-clean.model").touch()
    return tmp_path


def test_a_run_stands_for_its_model(tiny_config, tmp_path):
    classes = {"labels": ["a", "b"]}
    native.save(AlbertClassifier(tiny_config, 2), str(tmp_path / "run" / "model"), classes)
    found = locate(str(tmp_path / "run"))
    assert found == locate(str(tmp_path / "run" / "model"))
    assert found.labels() == found.labels_as(["c", "d"]) == ["a", "b"]


def test_classes_by_other_words(tiny_config, tmp_path, capsys):
    names = ["positive", "neutral", "negative"]
    huggingface.save(AlbertClassifier(tiny_config, 3), str(tmp_path), names)
    source = locate(str(tmp_path))
    assert source.has_labels(["Positive", "Neutral", "Negative"])
    assert not source.has_labels(names[::-1])
    assert not source.has_labels(["contradiction", "entailment", "neutral"])
    assert capsys.readouterr().out == ""
    assert source.has_labels(["good", "fair", "bad"])
    assert "positive, neutral, negative are read as good, fair, bad." in capsys.readouterr().out


# Format -> path, configuration, vocabulary, files with weights.
FOUND = {
    "native": ("", "albert_config.json", "vocab.txt", ["model.ckpt.data-00000-of-00001"]),
    "kerashub": (
        *("", "config.json", "assets/tokenizer/vocabulary.spm"),
        ["model.weights.h5", "task.weights.h5"],
    ),
    "huggingface": ("", "config.json", "spiece.model", ["model.safetensors"]),
    "google": (
        *("/model.ckpt-best", "albert_config.json", "30k-clean.model"),
        ["model.ckpt-best.data-00000-of-00001"],
    ),
}


@pytest.mark.parametrize("kind", formats.FORMATS)
def test_each_format(folders, tiny_config, kind):
    path, config, vocabulary, weights = FOUND[kind]
    source = locate(f"{folders / kind}/")
    files = [str(folders / kind / name) for name in (config, vocabulary)]
    assert source == formats.FORMATS[kind](f"{folders / kind}{path}", *files)
    assert source.weights_files == [str(folders / kind / name) for name in weights]
    assert source.config() == tiny_config
    model = source.make_model(tiny_config)
    assert type(model) is AlbertPretrainer
    other = AlbertPretrainer(tiny_config)
    locate(str(folders / "native")).load(other)
    lost = [model.sentence_order, other.sentence_order] if kind == "kerashub" else []
    for head in lost:
        head.set_weights([0 * each for each in head.get_weights()])
    new = source.load(model, Allowed(source.may_lack))
    assert new == ["sentence_order/logits/kernel", "sentence_order/logits/bias"] * bool(lost)
    assert_equal(model.variables, other.variables)


@pytest.mark.parametrize("kind", formats.FORMATS)
def test_an_encoder_is_loaded_and_heads_are_new(folders, tiny_config, kind):
    model, whole = AlbertClassifier(tiny_config, 3), AlbertPretrainer(tiny_config)
    locate(str(folders / "native")).load(whole)
    head = model.classification.logits.kernel.numpy()
    formats.load_start(model, locate(str(folders / kind)))
    np.testing.assert_array_equal(model.classification.logits.kernel, head)
    assert_equal(model.encoder.variables, whole.encoder.variables)


def test_a_checkpoint_by_its_prefix(folders):
    source = locate(str(folders / "google" / "model.ckpt-best"))
    assert source == locate(str(folders / "google"))
    (folders / "google" / "albert_config.json").unlink()
    (folders / "google" / "30k-clean.model").unlink()
    (folders / "google" / "vocab_chinese.txt").touch()
    source = locate(str(folders / "google" / "model.ckpt-best"))
    assert source.vocab_file == str(folders / "google" / "vocab_chinese.txt")
    assert source.config_file is None
    with pytest.raises(UserError, match="has no albert_config.json next to it. Pass --config_file"):
        source.config()


def test_weights_or_configuration_make_a_hugging_face_folder(folders):
    (folders / "huggingface" / "config.json").unlink()
    source = locate(str(folders / "huggingface"))
    assert (source.format, source.config_file) == ("huggingface", None)
    (folders / "huggingface" / "config.json").touch()
    (folders / "huggingface" / "model.safetensors").unlink()
    assert locate(str(folders / "huggingface")).format == "huggingface"


def test_a_folder_with_none_or_several(folders):
    (folders / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty holds no model: .*files ending in .index: none\)"):
        locate(str(folders / "empty"))
    for name in ("b", "a"):
        (folders / "empty" / f"{name}.index").touch()
    with pytest.raises(UserError, match=r"files ending in .index: a, b\)"):
        locate(str(folders / "empty"))


def test_a_replacement_that_was_interrupted(folders, tiny_config):
    """Between two renames the folder has another name."""
    (folders / "native").rename(folders / "native.old.partial")
    assert locate(str(folders / "native")).load(AlbertPretrainer(tiny_config)) == []


def test_a_checkpoint_that_is_not_the_references(tiny_config, tmp_path):
    bundle.write(str(tmp_path / "model"), {"encoder/kernel": np.zeros([2], np.float32)})
    with pytest.raises(UserError, match=r"has none of google-research's names \(bert/..., electra"):
        locate(str(tmp_path / "model")).load(AlbertEncoder(tiny_config))


def test_weights_in_several_files_and_a_folder_with_brackets(tmp_path):
    folder = tmp_path / "[large]"
    folder.mkdir()
    for name in ("index", "data-00000-of-00002", "data-00001-of-00002", "data-x", "meta"):
        (folder / f"model.ckpt.{name}").write_bytes(b"")
    found = formats.Google(str(folder / "model.ckpt"), None, None).weights_files
    assert found == [str(folder / f"model.ckpt.data-0000{part}-of-00002") for part in (0, 1)]
