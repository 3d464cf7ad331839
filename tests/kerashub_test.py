"""KerasHub's presets, read and written: by what KerasHub itself wrote (goldens/kerashub), and where
it is installed, or in ALBERT_TF_PEERS (benchmarks/make_peer_environments.sh), by its own classes.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import albert_tf
from albert_tf import AlbertClassifier, AlbertConfig, AlbertEncoder, AlbertPretrainer
from albert_tf.checkpoints import formats, native
from albert_tf.checkpoints.kerashub import KerasHub
from albert_tf.checkpoints.source import Beside
from albert_tf.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer

GOLDENS = Path(__file__).parent / "goldens" / "kerashub"
WEIGHTS = Path(albert_tf.__file__).parent / "weights" / "albert-small-en"
MASKED, CLASSIFIER = "masked_lm", "classifier"
# Their head of masked words adds 1e-5 to variances, google-research and this project 1e-12.
TOLERANCES = {MASKED: 5e-5, CLASSIFIER: 1e-5, "backbone": 1e-5}
THEIR_ANSWERS = """
import sys
import keras_hub, numpy as np
folder, kind, asked, answers = sys.argv[1:]
inputs = dict(np.load(asked))
positions = inputs.pop("mask_positions")
backbone = keras_hub.models.AlbertBackbone.from_preset(folder)
outputs = {name: np.asarray(value) for name, value in backbone(inputs).items()}
if kind == "masked_lm":
    task = keras_hub.models.AlbertMaskedLM.from_preset(folder)
    outputs["logits"] = np.asarray(task({**inputs, "mask_positions": positions}))
if kind == "classifier":
    task = keras_hub.models.AlbertTextClassifier.from_preset(folder)
    outputs["logits"] = np.asarray(task(inputs))
    assert task.predict(["The Cat.", "a dog"], verbose=0).shape == outputs["logits"][:2].shape
tokenizer = keras_hub.models.AlbertTokenizer.from_preset(folder)
np.savez(answers, **outputs, ids=np.asarray(tokenizer("He Studied in OXFORD.")))
"""


def read(folder):
    source = formats.recognize(str(folder))
    model = source.make_model(source.config())
    formats.load_whole(model, source)
    return model


def compare(model, asked, answers, tolerance):
    """Outputs here and there; the ones of padding differ, and concern nobody."""
    mask = asked["padding_mask"]
    inputs = {
        "input_word_ids": asked["token_ids"],
        "input_mask": mask,
        "input_type_ids": asked["segment_ids"],
    }
    ours = getattr(model, "encoder", model)(inputs)
    np.testing.assert_allclose(ours["pooled_output"], answers["pooled_output"], atol=1e-5)
    sequences = [each["sequence_output"] * mask[..., None] for each in (ours, answers)]
    np.testing.assert_allclose(*sequences, atol=1e-5)
    if "logits" not in answers:
        return
    if isinstance(model, AlbertPretrainer):
        outputs = model({**inputs, "masked_lm_positions": asked["mask_positions"]})
        logits = outputs["masked_lm_logits"]
    else:
        logits = model(inputs)
    np.testing.assert_allclose(logits, answers["logits"], atol=tolerance)


def datasets(path):
    """Name -> value in a file of theirs, without the optimizer, which is new when loaded."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, each: found.update({name: each[()]} if hasattr(each, "shape") else {})
        )
    return {name: value for name, value in found.items() if not name.startswith("optimizer/")}


@pytest.mark.parametrize("kind", [MASKED, CLASSIFIER])
def test_what_kerashub_wrote_is_read_and_written_as_it_was(kind, tmp_path):
    folder, model = GOLDENS / kind, read(GOLDENS / kind)
    golden = dict(np.load(folder / "outputs.npz"))
    compare(model, golden, golden, TOLERANCES[kind])
    assert KerasHub.save(model, str(tmp_path), Beside()) == (
        ["kerashub has no sentence-order head: it is left out."] if kind == MASKED else []
    )
    for name in ("model.weights.h5", "task.weights.h5"):
        ours, theirs = datasets(tmp_path / name), datasets(folder / name)
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            np.testing.assert_array_equal(ours[key], value)
    for name in ("config.json", "task.json"):
        ours, theirs = (json.loads((each / name).read_text()) for each in (tmp_path, folder))
        assert ours == theirs
    ours, theirs = (json.loads((each / "metadata.json").read_text()) for each in (tmp_path, folder))
    assert ours == {name: value for name, value in theirs.items() if name != "date_saved"}
    assert KerasHub.check(model, str(tmp_path), "float32").endswith("tensors as KerasHub has them")


def test_bfloat16_is_read(tmp_path):
    """Keras writes it as two bytes without a type, and names the type beside them."""
    folder = shutil.copytree(GOLDENS / CLASSIFIER, tmp_path / "preset")
    expected = read(GOLDENS / CLASSIFIER)
    for name in ("model.weights.h5", "task.weights.h5"):
        values = datasets(folder / name)
        with h5py.File(folder / name, "w") as file:
            for key, value in values.items():
                half = value.astype(tf.bfloat16.as_numpy_dtype)
                file.create_dataset(key, data=half).attrs["dtype"] = "bfloat16"
    for ours, theirs in zip(read(folder).variables, expected.variables, strict=True):
        half = tf.cast(tf.cast(theirs, tf.bfloat16), tf.float32)
        np.testing.assert_array_equal(ours.numpy(), half.numpy())


def test_an_encoder_alone_is_read_from_a_task():
    model = AlbertEncoder.from_preset(str(GOLDENS / MASKED))
    golden = dict(np.load(GOLDENS / MASKED / "outputs.npz"))
    del golden["logits"]
    compare(model, golden, golden, 1e-5)


@pytest.fixture
def small(tiny_config):
    """An encoder without a projection, as E = H."""
    config = tiny_config.replace(hidden_size=16, embedding_size=16, parameter_sharing="all")
    model = AlbertEncoder(config)
    for each in model.variables:
        each.assign_add(tf.random.normal(each.shape, stddev=0.2))
    return model


def test_equal_widths_have_an_identity_for_a_projection(small, tmp_path):
    KerasHub.save(small, str(tmp_path), Beside())
    assert np.array_equal(
        datasets(tmp_path / "model.weights.h5")["layers/dense/vars/0"], np.eye(16)
    )
    assert formats.round_trip(small, str(tmp_path)) == 0
    assert not read(tmp_path).config.always_project_embeddings


def test_several_labels_are_a_sigmoid(tiny_config, tmp_path):
    model = AlbertClassifier(tiny_config, 3, multi_label=True)
    (line,) = KerasHub.save(model, str(tmp_path), Beside(labels=("a", "b", "c")))
    assert "cannot store the names of the classes" in line
    assert json.loads((tmp_path / "task.json").read_text())["config"]["activation"] == "sigmoid"
    copy = read(tmp_path)
    assert (copy.num_classes, copy.multi_label) == (3, True)


def refuse_to_write(model, **beside):
    with pytest.raises(UserError) as caught:
        KerasHub.save(model, "/nonexistent", Beside(**beside))
    return str(caught.value)


def test_what_kerashub_does_not_compute_is_not_written(tiny_config):
    for changed in ({"hidden_act": "gelu_erf"}, {"layer_norm_eps": 1e-6}):
        (name,) = changed
        assert f"this model ({name}" in refuse_to_write(
            AlbertEncoder(tiny_config.replace(**changed))
        )
    bert = tiny_config.replace(parameter_sharing="none", embedding_size=tiny_config.hidden_size)
    assert "(a BERT or ELECTRA)" in refuse_to_write(AlbertEncoder(bert))
    labeler = albert_tf.AlbertSpanLabeler(tiny_config)
    assert "AlbertSpanLabeler has no counterpart in KerasHub" in refuse_to_write(labeler)
    words = refuse_to_write(AlbertEncoder(tiny_config), vocab_file="vocab.txt")
    assert "reads SentencePiece models only" in words


def change(path, **values):
    content = json.loads(path.read_text())
    content.update(values)
    path.write_text(json.dumps(content))


def test_what_is_not_an_albert_is_not_read(tmp_path):
    folder = tmp_path / "preset"

    def refused():
        with pytest.raises(UserError) as caught:
            read(folder)
        shutil.rmtree(folder)
        return str(caught.value)

    def copied():
        shutil.copytree(GOLDENS / CLASSIFIER, folder)
        return folder

    change(copied() / "config.json", class_name="BertBackbone")
    assert "presets of AlbertBackbone are supported, not of BertBackbone" in refused()
    change(copied() / "config.json", config={"num_layers": 2})
    assert "config.json lacks vocabulary_size, embedding_dim, hidden_dim" in refused()
    change(copied() / "task.json", class_name="AlbertReranker")
    assert "AlbertReranker is not one of AlbertMaskedLM, AlbertTextClassifier" in refused()
    task = json.loads((copied() / "task.json").read_text())["config"]
    change(folder / "task.json", config={**task, "activation": "tanh"})
    assert "activation 'tanh' has no counterpart here" in refused()
    change(copied() / "task.json", config={**task, "num_classes": "3"})
    assert "task.json has no num_classes or no dropout" in refused()
    for name in ("config.json", "task.json"):
        for other in ({"config": 3}, {"class_name": []}):
            change(copied() / name, **other)
            assert f"{name} does not hold a class with its configuration" in refused()
    (copied() / "model.weights.h5").rename(folder / "model.weights.json")
    assert "max_shard_size=None" in refused()
    (copied() / "task.weights.h5").write_bytes(b"no file of Keras")
    assert "task.weights.h5 is damaged or not a Keras file" in refused()
    (copied() / "task.weights.h5").unlink()
    assert "missing: task.weights.h5/layers/dense/vars/0" in refused()


@pytest.fixture(scope="module")
def converted(quick_python, tmp_path_factory):
    """Kind -> the preset that `convert` writes: of the shipped weights, and of a random classifier
    with groups and inner layers.
    """
    root, paths = tmp_path_factory.mktemp("kerashub"), {}
    tokenizer = load_tokenizer(str(WEIGHTS / "spiece.model"))
    config = AlbertConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=16, hidden_size=24, num_hidden_layers=4,
        num_attention_heads=4, intermediate_size=32, num_hidden_groups=2, inner_group_num=2,
        max_position_embeddings=64, initializer_range=0.2,
    )  # fmt: skip
    classifier = AlbertClassifier(config, 3)
    sources = {MASKED: str(WEIGHTS), CLASSIFIER: str(root / "classes"), "backbone": str(root / "e")}
    settings = {"lower": True, "rules": "google", "strip_accents": True, "space_chinese": False}
    for kind, model in ((CLASSIFIER, classifier), ("backbone", classifier.encoder)):
        native.save(model, sources[kind], {}, tokenizer.vocab_file, settings)
    lines = {}
    for kind, source in sources.items():
        paths[kind] = root / kind
        done = subprocess.run(
            [quick_python, "-m", "albert_tf.convert", f"--input={source}", "--format=kerashub",
             f"--output={paths[kind]}"],
            capture_output=True, text=True, cwd=GOLDENS.parents[2],
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines[kind] = done.stdout
    assert "sentence-order head: it is left out" in lines[MASKED]
    for each in lines.values():
        assert "KerasHub keeps accents" in each
        assert "tensors as KerasHub has them; read back, outputs differ by 0.0e+00" in each
    return paths


def test_lower_case_is_in_the_rules_of_the_vocabulary_that_is_written(converted):
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(converted[MASKED] / "assets" / "tokenizer" / "vocabulary.spm")
    )
    ours = load_tokenizer(str(WEIGHTS / "spiece.model"))
    for text in ("He Studied in OXFORD.", "THE", "ÆSOP"):
        assert processor.encode(text) == ours.encode(text)
    assert processor.encode("Café") == processor.encode("café") != ours.encode("Café")
    again = load_tokenizer(str(converted[MASKED] / "assets" / "tokenizer" / "vocabulary.spm"))
    assert again.settings == ours.settings
    for text in ("He Studied in OXFORD.", "Café", "in 2010, 1,000"):
        assert again.encode(text) == ours.encode(text)


@pytest.mark.parametrize("kind", TOLERANCES)
def test_kerashub_gives_the_same_answers(converted, kind, tmp_path):
    python = sys.executable
    if importlib.util.find_spec("keras_hub") is None:
        if "ALBERT_TF_PEERS" not in os.environ:
            pytest.skip("keras_hub is not installed, and ALBERT_TF_PEERS names no environments")
        python = os.path.join(os.path.abspath(os.environ["ALBERT_TF_PEERS"]), "keras/bin/python")
    ids = np.random.RandomState(0).randint(5, 12000, [3, 16]).astype(np.int32)
    ids[1, 9:] = 0
    asked = {
        "token_ids": ids,
        "padding_mask": (ids > 0).astype(np.int32),
        "segment_ids": ((np.arange(16) > 5) * (ids > 0)).astype(np.int32),
        "mask_positions": np.array([[1, 3], [2, 4], [5, 7]], np.int32),
    }
    np.savez(tmp_path / "asked.npz", **asked)
    ours = ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND", "PYTHONPATH")
    done = subprocess.run(
        [python, "-c", THEIR_ANSWERS, converted[kind], kind, tmp_path / "asked.npz",
         tmp_path / "answers.npz"],
        env={name: value for name, value in os.environ.items() if name not in ours},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = dict(np.load(tmp_path / "answers.npz"))
    tokenizer = load_tokenizer(str(WEIGHTS / "spiece.model"))
    assert answers.pop("ids").tolist() == tokenizer.encode("He Studied in OXFORD.")
    compare(read(converted[kind]), asked, answers, TOLERANCES[kind])
