"""Tiny models, exported once for all tests of this folder."""

import dataclasses
import os
import random
import shutil
import subprocess
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from albert_tf.keras_compat import keras  # noqa: I001  (first: it chooses Keras 2)

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.models import (
    AlbertClassifier,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertReplacedTokenDetector,
    AlbertSentenceEncoder,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
    AlbertTokenClassifier,
)
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from export import saved_model
from export.model_folder import LoadedModel
from export.tasks import TASKS, export_model

ROOT = Path(__file__).parents[2]
MAX_SEQ_LENGTH = 48
TAGS = ("O", "B-LOC", "I-LOC")
THRESHOLD = 0.01
LABELS = ("red", "green", "blå")
_TEXT = """the a cat dog house paris france capital of is in 2010, 3.0, 1,000, runs fast slowly
and then every man who looked at water river mountain returns largest value (maybe) well-known file
path “quoted” café"""


class Made(dict):
    """Values by name, each made when it is first asked for."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def __missing__(self, name):
        return self.setdefault(name, self.make(name))


def rows(table, *few):
    """All rows of a table as parameters, of which `make test` runs a few."""
    further = pytest.mark.table
    return [
        row
        if row in few
        else pytest.param(*(row if isinstance(row, tuple) else [row]), marks=further)
        for row in table
    ]


@dataclasses.dataclass(frozen=True)
class Exports:
    """Exports of all tasks, with the Keras models they are made from; the model folders are
    gone."""

    results: Made  # By task.
    models: dict  # By name, as in EXPORTED.
    vocabulary: object

    @property
    def paths(self):
        return Made(lambda task: self.results[task].path)

    def base(self, task):
        return os.path.dirname(self.paths[task])


@pytest.fixture(scope="session")
def vocabulary_dir(tmp_path_factory):
    """A folder with spiece.model (ids as ALBERT's) and tokenizer_settings.json."""
    folder = tmp_path_factory.mktemp("vocabulary")
    choose, words = random.Random(0).choice, _TEXT.split()
    lines = [" ".join(choose(words) for _ in range(12)) + "." for _ in range(2000)]
    with open(folder / "spiece.model", "wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=writer, model_type="unigram",
            vocab_size=120, hard_vocab_limit=False, minloglevel=2,
            pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"],
            user_defined_symbols=["(", ")", '"', "-", ".", "–", "£", "€"],
        )  # fmt: skip
    tokenizer = load_tokenizer(str(folder / "spiece.model"))
    (folder / "tokenizer_settings.json").write_bytes(tokenizer.settings_json())
    return folder


@pytest.fixture(scope="session")
def vocabulary(vocabulary_dir):
    return load_tokenizer(str(vocabulary_dir / "spiece.model"))


@pytest.fixture(scope="session")
def config(vocabulary):
    return AlbertConfig(
        vocab_size=vocabulary.vocab_size,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        initializer_range=0.2,
        hidden_dropout_prob=0.1,
    )


# Task of export -> the model of `keras_models` that is exported.
EXPORTED = {
    "classifier": "classifier",
    "regression": "regression",
    "masked_lm": "pretrainer",
    "multiple_choice": "multiple_choice",
    "tagging": "tagger",
    "embedding": "sentence_encoder",
    "replaced_tokens": "detector",
    "question_answering": "span_labeler_v2",
    "encoder": "pretrainer",
    "preprocessor": "pretrainer",
}


@pytest.fixture(scope="session")
def keras_models(config):
    """Models of every kind with random weights."""
    keras.utils.set_random_seed(7)
    return {
        "classifier": AlbertClassifier(config, len(LABELS), name="of_any_name"),
        "regression": AlbertClassifier(config, 1),
        "pretrainer": AlbertPretrainer(config),
        "sentence_encoder": AlbertSentenceEncoder(config),
        "multiple_choice": AlbertMultipleChoice(config),
        "tagger": AlbertTokenClassifier(config, len(TAGS)),
        "detector": AlbertReplacedTokenDetector(config),
        "span_labeler": AlbertSpanLabeler(config),
        "span_labeler_v2": AlbertSpanLabelerV2(config),
    }


# What model.json holds beside the task and the length.
_WINDOWS = {"doc_stride": 8, "max_query_length": 12}
METADATA = {
    "classifier": {"labels": LABELS},
    "regression": {"labels": []},
    "tagger": {"labels": TAGS},
    "multiple_choice": {"labels": ["A", "B", "C", "D"], "max_qa_length": 20},
    "span_labeler": _WINDOWS,
    "span_labeler_v2": {
        **_WINDOWS,
        "metrics": {"null_score_diff_threshold": THRESHOLD, "NoAns_f1": float("nan")},
    },
}


def loaded_as(model, vocabulary, max_seq_length=MAX_SEQ_LENGTH, labels=(), **metadata):
    """A model, or a stand-in for one, as export opens a model folder."""
    folder = os.path.dirname(vocabulary.vocab_file)
    return LoadedModel(model, vocabulary, labels, max_seq_length, folder, metadata)


@pytest.fixture(scope="session")
def model_dirs(keras_models, vocabulary_dir, tmp_path_factory):
    """Native model folders of all of them."""
    root = tmp_path_factory.mktemp("models")
    vocabulary = str(vocabulary_dir / "spiece.model"), dataclasses.asdict(TokenizerSettings())
    for name, model in keras_models.items():
        metadata = {"max_seq_length": MAX_SEQ_LENGTH, **METADATA.get(name, {})}
        native.save(model, str(root / name), metadata, *vocabulary)
    return {name: str(root / name) for name in keras_models}


@pytest.fixture(scope="session")
def exports(model_dirs, keras_models, vocabulary, tmp_path_factory):
    """Tasks exported from model folders that are deleted before anything is loaded. Servers and
    clients of this process load each export once.
    """
    root = tmp_path_factory.mktemp("exports")

    def export(task):
        folder = shutil.copytree(model_dirs[EXPORTED[task]], root / "model")
        result = export_model(str(folder), str(root / task), task)
        shutil.rmtree(folder)
        return result

    load, loaded = saved_model.load, Made(saved_model.load)

    def load_once(path):
        return loaded[path] if path.startswith(str(root)) else load(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved_model, "load", load_once)
        yield Exports(Made(export), keras_models, vocabulary)


@pytest.fixture(scope="session")
def signatures(exports):
    """task -> the signatures of its export."""
    return lambda task: saved_model.load(exports.paths[task]).signatures


@pytest.fixture(scope="session")
def answers(signatures):
    """(task, signature, **inputs) -> what its export answers, as arrays by name."""

    def ask(task, name="serving_default", /, **inputs):
        signature = signatures(task)[name]
        specs = signature.structured_input_signature[1]
        given = {each: tf.constant(value, specs[each].dtype) for each, value in inputs.items()}
        return {each: value.numpy() for each, value in signature(**given).items()}

    return ask


def assert_same_answer(found, expected, atol=1e-5):
    """Numbers are equal within rounding, everything else exactly."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        value = np.asarray(value)
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.fixture(scope="session")
def store(exports):
    """The classifier and the masked LM, loaded as a server loads them."""
    models = {"topics": exports.base("classifier"), "words": exports.base("masked_lm")}
    return loaded_store(models)


@pytest.fixture(scope="session")
def every_store(exports):
    """The models of all tasks, loaded as a server loads them, under the tasks' names."""
    return loaded_store({task: exports.base(task) for task in TASKS})


def loaded_store(models):
    """A server's store of models by name, loaded."""
    from export.server.models import ModelConfig, ModelStore

    store = ModelStore([ModelConfig(name, path) for name, path in models.items()])
    store.load()
    return store


def run_in_clean_environment(*command, cwd=None, **environment):
    """Runs a command without this process's choice of Keras and packages."""
    ours = ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND", "PYTHONPATH")
    others = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        command, cwd=cwd, env=others | environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="session")
def run_module(quick_python):
    """Runs `python -m module flags...` in the repository's folder; returns the finished process."""

    def run(*arguments):
        return subprocess.run(
            [quick_python, "-m", *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
