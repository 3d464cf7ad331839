"""Two logical CPU devices for the whole session, and what many tests start from: a tiny
configuration and batches.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from albert_tf.keras_compat import keras  # isort: skip  Chooses Keras before TensorFlow is imported.

import absl.logging
import hypothesis
import pytest
import tensorflow as tf
from absl import flags

from albert_tf.config import AlbertConfig
from albert_tf.machine import fast_switch
from data_pipeline.errors import name_flags

absl.logging.set_verbosity(absl.logging.WARNING)  # Not every save of a checkpoint.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

name_flags()  # Tests of messages read them as programs' users do.

# No test is about time; and in CI all runs try the same examples.
hypothesis.settings.register_profile("tests", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("tests")

BATCH, LENGTH, PREDICTIONS = 8, 12, 3

# Compiling by XLA takes longer than most tests, and so does TensorFlow's rewriting of graphs. Both
# are there in tests of the fast form, marked `fast_layers`, and in programs that run in processes
# of their own.
fast_switch.choose("off")


def rewrite_graphs(wanted: bool) -> None:
    """Whether TensorFlow rewrites what is traced from now on."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not wanted})


rewrite_graphs(False)

# The folder whose tests share exports of all tasks, which take a minute to make, and its files that
# make their own.
ONE_PROCESS = "tests/export/"
APART = ("precision_test.py", "litert_test.py", "comparison_test.py", "tasks_test.py")

COUNTS = pytest.StashKey[dict[str, int]]()

# Files of long tests that share nothing, by name: each test is for whichever process is free.
SINGLE = ("end_to_end", "conformance", "keras_conformance", "keras_compiled")
# What takes longest starts first, so that no process is left alone with it.
LONGEST = [
    *("end_to_end", "run_pretraining", "keras_conformance", "conformance", "steps", "loop"),
    *("run_finetuning", "interruption", "signals", "experiment", "killed", "run_ensemble"),
]


def shares_exports(nodeid: str) -> bool:
    """Whether a test is one of those that one process has to run."""
    return nodeid.startswith(ONE_PROCESS) and not file_of(nodeid).endswith(APART)


def file_of(nodeid: str) -> str:
    """tests/a_test.py::test_b[1] -> tests/a_test.py."""
    return nodeid.partition("::")[0]


def name_of(path: str) -> str:
    """tests/a_test.py -> a."""
    return os.path.basename(path).removesuffix("_test.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves what takes longest to the front; all else stays where it is."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}

    def rank(item: pytest.Item) -> int:
        if shares_exports(item.nodeid):
            return -1
        return ranks.get(name_of(item.path.name), len(ranks))

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """As --dist=loadfile, which gives whole files to processes, but for SINGLE and ONE_PROCESS."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FilesAndOneFolder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if shares_exports(nodeid):
                return ONE_PROCESS
            is_single = name_of(file_of(nodeid)) in SINGLE
            return nodeid if is_single else super()._split_scope(nodeid)

    return FilesAndOneFolder(config, log)


# Marker -> the command that runs what has it, where the expression of -m leaves it out.
LEFT_OUT = {"table": "make test-all", "long": "make test-long"}


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Counts what the markers leave out."""
    for item in items:
        marker = next((name for name in reversed(LEFT_OUT) if item.get_closest_marker(name)), None)
        if marker:
            counts = item.config.stash.setdefault(COUNTS, collections.Counter())
            counts[marker] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several hands its counts on."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash.get(COUNTS, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    """Every process collects, and leaves out, the same tests."""
    node.config.stash[COUNTS] = getattr(node, "workeroutput", {}).get("left_out", {})


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Says what did not run, and which command runs it."""
    for marker, count in config.stash.get(COUNTS, {}).items():
        terminalreporter.write_line(f"{count} tests were left out: {LEFT_OUT[marker]} runs them.")


def pytest_collection_finish() -> None:
    """Leaves what was imported out of all later collections, each of which takes 0.3 s with it."""
    gc.freeze()


@contextlib.contextmanager
def running_eagerly() -> Iterator[None]:
    """Functions run as plain Python in the block."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.fixture
def eagerly():
    """A context for a part of a test of which a graph would tell nothing more."""
    return running_eagerly


@pytest.fixture
def eager() -> Iterator[None]:
    """The test runs as plain Python, where tracing graphs would take longer than the test."""
    with running_eagerly():
        yield


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same initial weights in every run of a test."""
    keras.utils.set_random_seed(7)


@pytest.fixture(scope="session")
def tiny_config() -> AlbertConfig:
    return AlbertConfig(
        vocab_size=50,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )


@pytest.fixture
def fast_choice(monkeypatch):
    """`fast_switch.choose`, whose choice ends with the test."""
    monkeypatch.setattr(fast_switch, "_chosen", None)
    return fast_switch.choose


@pytest.fixture(params=["plain", "fast"])
def plain_and_fast(request, fast_choice) -> None:
    """The test runs twice: with plain operations, and with the fast ones."""
    rewrite_graphs(fast_choice("on" if request.param == "fast" else "off"))


@pytest.fixture(autouse=True)
def layers_of_the_test(request, monkeypatch) -> Iterator[None]:
    """Plain operations, or where the test is marked `fast_layers` the fast ones, and TensorFlow's
    rewriting of graphs.
    """
    is_fast = request.node.get_closest_marker("fast_layers") is not None
    monkeypatch.setattr(fast_switch, "_chosen", is_fast)
    rewrite_graphs(is_fast)
    yield
    rewrite_graphs(False)  # Calls in a graph tell the setting: fixtures of many tests have one.


@pytest.fixture(scope="session")
def two_devices() -> tf.distribute.Strategy:
    """One for all tests: a second strategy would reuse the first one's collective operations."""
    return tf.distribute.MirroredStrategy(
        [device.name for device in tf.config.list_logical_devices("CPU")]
    )


@pytest.fixture(scope="session")
def few_words() -> list[str]:
    """Thirty-five English words that make sense one after the other."""
    text = """the cat sat on a mat while every dog ran off quickly to see what was in there because
    nobody knew how many old grey birds would fly over that quiet house before winter came"""
    return text.split()


@pytest.fixture(scope="session")
def small_corpus(few_words):
    """Number of sentences -> documents of six short sentences each, enough for 48 pieces."""

    def corpus(num_sentences: int) -> str:
        sentences = [
            " ".join(few_words[i % 19 :][:: 1 + i % 3]) + "." for i in range(num_sentences)
        ]
        documents = ["\n".join(sentences[i : i + 6]) for i in range(0, num_sentences, 6)]
        return "\n\n".join(documents)

    return corpus


@pytest.fixture(scope="module")
def files(tmp_path_factory, small_corpus, few_words) -> Path:
    """A folder with what programs read: corpus.txt, rows.tsv, config.json, vocabulary, model."""
    from albert_tf.checkpoints import native
    from albert_tf.models import AlbertPretrainer
    from data_pipeline.tokenizers.vocabulary import train_vocabulary
    from tests.conformance_cases import SMALLEST

    folder = tmp_path_factory.mktemp("files")
    (folder / "corpus.txt").write_text(small_corpus(60), encoding="utf-8")
    rows = [f"{' '.join(few_words[i:])}\t{'ab'[i % 2]}" for i in range(16)]
    (folder / "rows.tsv").write_text("\n".join(["text\tlabel", *rows, ""]))
    SMALLEST.to_json_file(str(folder / "config.json"))
    path = train_vocabulary(str(folder / "corpus.txt"), str(folder / "vocabulary"), 48)
    settings = {"lower": True, "rules": "google"}
    native.save(AlbertPretrainer(SMALLEST), str(folder / "model"), {}, path, settings)
    return folder


@contextlib.contextmanager
def flags_of_its_own() -> Iterator[None]:
    """Removes the flags that are defined in the block: programs have flags of the same names."""
    before = set(flags.FLAGS)
    try:
        yield
    finally:
        for name in set(flags.FLAGS) - before:
            delattr(flags.FLAGS, name)


@pytest.fixture
def new_flags():
    """A context in which flags may be defined, for it alone."""
    return flags_of_its_own


@pytest.fixture
def run_program(monkeypatch):
    """(module, *argv) -> runs a binary in this process; it ends with SystemExit."""

    def run(module: str, *argv: str) -> None:
        monkeypatch.setattr(sys, "argv", [module, *argv])
        with flags_of_its_own():
            runpy.run_module(module, run_name="__main__", alter_sys=True)

    return run


@pytest.fixture
def result_of(run_program, capsys):
    """(module, *argv) -> exit code, stdout and stderr of a binary that runs in this process."""

    def run(module: str, *argv: str) -> subprocess.CompletedProcess:
        with pytest.raises(SystemExit) as end:
            run_program(module, *argv)
        return subprocess.CompletedProcess(
            [module, *argv], end.value.code or 0, *capsys.readouterr()
        )

    return run


@pytest.fixture(scope="session")
def quick_python(tmp_path_factory) -> Iterator[str]:
    """A command that runs programs as `sys.executable` does, in forked processes: see
    forked_programs.py.
    """
    server = Path(__file__).with_name("forked_programs.py")
    address = tmp_path_factory.mktemp("server") / "socket"
    python = address.with_name(f"{address.name}.python")
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{server}" "{address}" "$@"\n')
    python.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, str(server), str(address)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout.readline() == b"ready\n"
    yield str(python)
    process.communicate()


# What the project itself writes to stderr: errors, warnings, progress.
OWN_LINES = re.compile(
    r"|\w+(\.py)?: error: .*|warning: .*|training died .*|interrupted"
    r"|corpus: .*| *\d+%\|.*"
)


@pytest.fixture(scope="session")
def foreign_lines():
    """Text of stderr -> the lines in it that are not the project's."""

    def find(text: str) -> list[str]:
        return [line for line in re.split(r"[\r\n]+", text) if not OWN_LINES.fullmatch(line)]

    return find


def pretraining_batch(step: tf.Tensor | int, vocab_size: int = 50) -> dict[str, tf.Tensor]:
    """A batch of made-up pre-training data, a function of the step."""
    seed = tf.stack([tf.cast(step, tf.int32), 11])

    def integers(salt: int, shape: list[int], limit: int) -> tf.Tensor:
        return tf.random.stateless_uniform(shape, seed + salt, 0, limit, tf.int32)

    lengths = integers(1, [BATCH, 1], LENGTH - 4) + 5
    return {
        "input_word_ids": integers(2, [BATCH, LENGTH], vocab_size),
        "input_mask": tf.cast(tf.range(LENGTH)[None] < lengths, tf.int32),
        "input_type_ids": integers(3, [BATCH, LENGTH], 2),
        "masked_lm_positions": integers(4, [BATCH, PREDICTIONS], 5),
        "masked_lm_ids": integers(5, [BATCH, PREDICTIONS], vocab_size),
        "masked_lm_weights": tf.cast(integers(6, [BATCH, PREDICTIONS], 2), tf.float32),
        "sentence_order_labels": integers(7, [BATCH], 2),
        "example_weights": tf.ones([BATCH]),
    }


@pytest.fixture(scope="session")
def pretraining_data():
    """start_step -> endless dataset of made-up batches."""
    return lambda start_step: tf.data.Dataset.range(start_step, 1 << 40).map(pretraining_batch)
