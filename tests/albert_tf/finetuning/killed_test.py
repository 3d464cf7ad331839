"""run_finetuning, killed by kill -9 in the middle: the same command ends with the same bits."""

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.finetuning_files import six_updates
from tests.run_results import figures

ROOT = Path(__file__).parents[3]

# Runs the program, and kills it before the n-th part of the work of a kind.
KILLER = """
import os, runpy, signal, sys
from data_pipeline.command_line import run_binary
from albert_tf.finetuning import evaluation, outcome
from albert_tf.training.steps import Stepper

kind, count, sys.argv = sys.argv[1], int(sys.argv[2]), ["run_finetuning", *sys.argv[3:]]

def pass_on():
    global count
    count -= 1
    if count == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def before(function):
    def call(*args, **named):
        pass_on()
        return function(*args, **named)
    return call

if kind == "updates":
    original = Stepper.train
    Stepper.train = before(lambda stepper, *args: original.__get__(stepper, Stepper)(*args))
elif kind == "batches":
    distribute = evaluation.distributed
    def batches(*args):
        class Batches:
            def __init__(self, found):
                self.found = found
            def __iter__(self):
                for batch in self.found:
                    pass_on()
                    yield batch
        return Batches(distribute(*args))
    evaluation.distributed = batches
elif kind == "results":
    outcome.write_results = before(outcome.write_results)
else:
    os.replace = before(os.replace)
runpy.run_module("albert_tf.run_finetuning", run_name="__main__", alter_sys=True)
"""


def run_with(python: str, *flags: str, killed_before: tuple[str, int] | None = None) -> None:
    """Runs the program to its end, or until it is killed before a part of its work."""
    program = ["-m", "albert_tf.run_finetuning"]
    if killed_before:
        program = ["-c", KILLER, killed_before[0], str(killed_before[1])]
    ended = subprocess.run(
        [python, *program, *flags],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    expected = -signal.SIGKILL if killed_before else 0
    assert ended.returncode == expected, ended.stdout[-2000:] + ended.stderr[-4000:]


@pytest.fixture(scope="module")
def run(quick_python) -> Callable[..., None]:
    return functools.partial(run_with, quick_python)


@pytest.fixture(scope="module")
def flags(tmp_path_factory, labeled_texts, work) -> list[str]:
    """Those of a run of six updates with dropout, evaluated after every second, on two batches;
    checkpoints before and after.
    """
    data = tmp_path_factory.mktemp("data")
    rows = [f"{text}\t{label}\n" for text, label in labeled_texts]
    for name, part in (("train", rows), ("dev", rows[3:10])):
        (data / f"{name}.tsv").write_text("text\tlabel\n" + "".join(part), encoding="utf-8")
    values = six_updates(data, work)
    return [f"--{name}={value}" for name, value in values.items()]


@pytest.fixture(scope="module")
def train(run, flags) -> Callable[..., None]:
    """(folder, killed_before) -> such a run."""

    def start(folder: Path, killed_before: tuple[str, int] | None = None) -> None:
        run(*common(folder), *flags, killed_before=killed_before)

    return start


def common(folder: Path) -> list[str]:
    return [
        *("--task=tsv", f"--output_dir={folder}", "--eval_batch_size=4"),
        *("--distribution=one_device", "--fast=off"),
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, flags) -> Path:
    """The folder of a run that nobody killed, and whose seed of hashes is another."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    run_with(sys.executable, *common(folder), *flags)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """The models, answers and scores of a run by the names of their files.

    A kill may leave an unfinished file, whose name nobody reads.
    """
    kept = ("model", "last_model", "outputs", "predictions")
    paths = [path for name in kept for path in (folder / name).rglob("*") if path.is_file()]
    paths += [folder / "results.json", folder / "results.md"]
    whole = [path for path in paths if path.suffix != ".partial"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in whole}


@pytest.mark.table
def test_killed_in_training(train, whole, tmp_path):
    """In the third of three calls, after two evaluations."""
    folder = tmp_path / "run"
    train(folder, killed_before=("updates", 3))
    assert not (folder / "last_model").exists()
    train(folder)
    assert content(folder) == content(whole) and figures(folder) == figures(whole)


@pytest.mark.long
def test_killed_in_evaluation(train, whole, tmp_path):
    """In the middle of the second one, and then when the end is written, before the results."""
    folder = tmp_path / "run"
    train(folder, killed_before=("batches", 4))
    assert not (folder / "last_model").exists()
    train(folder, killed_before=("results", 1))
    assert (folder / "last_model").exists() and not (folder / "results.json").exists()
    train(folder)
    assert content(folder) == content(whole) and figures(folder) == figures(whole)


@pytest.mark.long
def test_killed_in_prediction(run, whole, tmp_path, few_words):
    """In the middle, and then between its two files."""
    texts = tmp_path / "new.tsv"
    texts.write_text("text\n" + "".join(f"{word} cat\n" for word in few_words[:9]))
    expected, folder = tmp_path / "expected", tmp_path / "run"
    for path in (expected, folder):
        shutil.copytree(whole, path)
    flags = ("--mode=predict", f"--predict_file={texts}")
    run(*common(expected), *flags)
    run(*common(folder), *flags, killed_before=("batches", 2))
    assert content(folder) == content(whole)
    run(*common(folder), *flags, killed_before=("files", 2))
    assert content(folder).keys() - content(whole).keys() == {"outputs/predict.best.npz"}
    run(*common(folder), *flags)
    assert content(folder) == content(expected)
    assert content(folder).keys() - content(whole).keys() == {
        "outputs/predict.best.npz",
        "predictions/tsv_predict.tsv",
    }
