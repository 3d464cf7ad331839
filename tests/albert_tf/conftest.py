"""Small records of real sentences, and runs of the whole program."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from albert_tf.training.report import machine
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from tests.conformance_cases import SMALLEST

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_measured_rate(request, monkeypatch) -> None:
    """Runs in this process do not measure how fast the machine multiplies, which takes a second."""
    if request.path.name != "machine_test.py":
        monkeypatch.setattr(machine, "matmul_flops_per_second", lambda *given: 1e11)


@pytest.fixture(scope="session")
def work(tmp_path_factory, small_corpus) -> Path:
    """A folder with `sop` and `nsp` (dynamic records) and config.json (with dropout)."""
    folder = tmp_path_factory.mktemp("training")
    corpus = folder / "corpus.txt"
    corpus.write_text(small_corpus(120), encoding="utf-8")
    train_vocabulary(str(corpus), str(folder / "vocabulary"), 48)
    tokenizer = load_tokenizer(str(folder / "vocabulary" / "spiece.model"))
    for objective in ("sop", "nsp"):
        settings = PretrainingSettings(
            max_seq_length=32, dupe_factor=1, masking="dynamic", sentence_objective=objective
        )
        output = str(folder / objective)
        create_pretraining_data(Corpus(str(corpus)), output, tokenizer, settings)
    config = SMALLEST.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    config.to_json_file(str(folder / "config.json"))
    return folder


@pytest.fixture(scope="session")
def labeled_texts(few_words) -> list[tuple[str, str]]:
    """Twenty texts of 3 to 11 words, in the classes a and b by turns."""
    return [(" ".join(few_words[i : i + 3 + i % 9]), "ab"[i % 2]) for i in range(20)]


@pytest.fixture
def pretraining_command(work, tmp_path):
    """Flags -> what Python is given for a short run in tmp_path / "run"; other flags by name, those
    that are None not at all.
    """

    def command(**flags: object) -> list[str]:
        values = {
            "config_file": work / "config.json",
            "train_data": work / "sop",
            "output_dir": tmp_path / "run",
            "train_batch_size": 8,
            "learning_rate": 0.02,
            "num_train_steps": 12,
            "num_warmup_steps": 2,
            "steps_per_loop": 2,
            "checkpoint_steps": 4,
            "distribution": "one_device",
            "fast": "off",  # XLA compiles longer than such a run takes.
            **flags,
        }
        pairs = [f"--{name}={value}" for name, value in values.items() if value is not None]
        return ["-m", "albert_tf.run_pretraining", *pairs]

    return command


@pytest.fixture
def pretrain(result_of, pretraining_command, fast_choice):
    """(*flags, **other flags by name) -> the result of such a run, in this process."""

    def run(*flags: str, **others: object) -> subprocess.CompletedProcess:
        _, module, *arguments = pretraining_command(**others)
        return result_of(module, *arguments, *flags)

    return run


@pytest.fixture
def program(result_of, fast_choice):
    """(module of albert_tf, **flags) -> exit code, stdout and stderr in this process; None: no
    such flag.
    """

    def run(module: str, **flags: object) -> tuple[int, str, str]:
        given = [f"--{name}={value}" for name, value in flags.items() if value is not None]
        found = result_of(f"albert_tf.{module}", *given)
        return found.returncode, found.stdout, found.stderr

    return run


@pytest.fixture
def start_program(quick_python):
    """arguments of Python, fresh=False, **environment -> a running process whose output is
    collected; ended in any case.

    fresh: whether it starts from nothing, with a seed of hashes that no other process has.
    """
    processes = []

    def start(arguments: list[str], fresh: bool = False, **environment: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable if fresh else quick_python, *arguments],
            cwd=ROOT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def start_workers(start_program):
    """(command, fresh=False) -> two processes of a run, which talk over loopback.

    fresh: the first one has another seed of hashes, see `start_program`.
    """

    def start(command: list[str], fresh: bool = False) -> list[subprocess.Popen]:
        servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        cluster = {"worker": [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]}
        for server in servers:
            server.close()
        configs = [{"cluster": cluster, "task": {"type": "worker", "index": i}} for i in (0, 1)]
        return [
            start_program(command, fresh=fresh and not number, TF_CONFIG=json.dumps(config))
            for number, config in enumerate(configs)
        ]

    return start
