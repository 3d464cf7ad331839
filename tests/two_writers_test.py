"""Two programs that write one folder: the second one learns who is there, and changes nothing."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from albert_tf.checkpoints import native
from albert_tf.models import AlbertEncoder
from data_pipeline.files import lock
from data_pipeline.records import record_folder
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from tests.conformance_cases import SMALLEST

PROGRAMS = {
    "data_pipeline.train_vocabulary": ["--input={files}/corpus.txt", "--vocab_size=48"],
    "data_pipeline.create_pretraining_data": [
        *("--input={files}/corpus.txt", "--vocab_file={files}/spiece.model"),
        *("--num_processes=1", "--dupe_factor=100", "--shard_mb=0.01"),
    ],
    "albert_tf.create_finetuning_data": [
        *("--task=tsv", "--train_file={files}/train.tsv", "--vocab_file={files}/spiece.model"),
        *("--max_seq_length=32", "--label_column=label"),
    ],
    "export.run_export": ["--model_dir={files}/model", "--task=encoder"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory, small_corpus) -> Path:
    """A folder with what the programs read."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "corpus.txt").write_text(small_corpus(600))
    (folder / "train.tsv").write_text("text\tlabel\nthe cat\ta\na mat\tb\n")
    train_vocabulary(str(folder / "corpus.txt"), str(folder), 48)
    native.save(
        AlbertEncoder(SMALLEST), str(folder / "model"), {}, str(folder / "spiece.model"), {}
    )
    return folder


@pytest.fixture
def start(quick_python, files):
    """(module, output folder, *arguments) -> the program of PROGRAMS, which has begun."""

    def begin(module: str, folder: Path, *arguments: str) -> subprocess.Popen:
        usual = [argument.format(files=files) for argument in PROGRAMS[module]]
        return subprocess.Popen(
            [quick_python, "-m", module, *usual, f"--output_dir={folder}", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.mark.parametrize("module", PROGRAMS)
def test_the_second_program_is_refused_with_the_name_of_the_first(tmp_path, start, module):
    with lock.locked(str(tmp_path)):
        second = start(module, tmp_path, "--print_flags=false")
        message = second.communicate(timeout=120)[1]
        assert second.returncode == 2
        holder = f"process {os.getpid()} on {socket.gethostname()}, started "
        assert f"--output_dir={tmp_path} is in use by {holder}" in message
        assert os.listdir(tmp_path) == [lock.LOCK_FILE]
    assert os.listdir(tmp_path) == []


def test_two_kinds_of_records_for_one_folder(tmp_path, start):
    """The first one is stopped in the middle of its work; a killed one is in nobody's way."""
    module, folder = "data_pipeline.create_pretraining_data", tmp_path / "records"
    first = start(module, folder, "--seed=2", "--max_seq_length=32")
    while not list(folder.glob(".partial/block-*")):
        assert first.poll() is None
        time.sleep(0.01)
    pid = int(re.match(r"process (\d+) ", (folder / lock.LOCK_FILE).read_text())[1])
    os.kill(pid, signal.SIGSTOP)
    try:
        second = start(module, folder, "--seed=1", "--max_seq_length=64")
        message = second.communicate(timeout=120)[1]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert second.returncode == 2 and f"in use by process {pid} on" in message
    assert first.wait(timeout=120) == 0
    manifest = record_folder.verify_records(str(folder), full=True)
    assert manifest["seed"] == 2 and manifest["settings"]["max_seq_length"] == 32
    assert not {lock.LOCK_FILE, ".partial"} & set(os.listdir(folder))

    killed = start(module, folder, "--seed=3", "--overwrite")
    while not (folder / lock.LOCK_FILE).exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    again = start(module, folder, "--seed=1", "--max_seq_length=64", "--overwrite")
    assert again.wait(timeout=120) == 0
    assert record_folder.verify_records(str(folder), full=True)["seed"] == 1
