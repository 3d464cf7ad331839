"""The whole job through the doors a user has: the demonstration, and the commands of the README.

Both run real processes on a small corpus of real text with little training. They are forked, since
starting takes longer than what they do (data_pipeline/quiet_test.py tests fresh
starts); only the README's Python starts as a user's does.
"""

from __future__ import annotations

import csv
import functools
import json
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance_cases import SMALLEST
from tests.forked_programs import ENTRY_POINT

ROOT = Path(__file__).parents[1]

LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # Set for tests; a user sets nothing.

# What makes the README's commands short: smaller, fewer.
SHORTENED = {
    "--preset=albert-small ": "--config_file=config.json ",
    "--vocab_size=8000": "--vocab_size=400",
    # TensorFlow 2.21 has crashed at the first step a few times, for reasons not known.
    "--num_train_steps=20000": "--num_train_steps=6 --max_failures=2 --fast=off",
    "--num_warmup_steps=1000": "--num_warmup_steps=2",
    "--eval_steps=2000": "--eval_steps=4",
    "--train_batch_size=64": "--train_batch_size=8",
    "demo/tickets": str(ROOT / "demo" / "tickets"),
    "--num_train_epochs=5": "--num_train_steps=3 --max_failures=2 --fast=off",
    "--num_train_epochs=3": "--num_train_epochs=1 --max_failures=2 --fast=off",
    'get_preset("albert-base-v2")': 'get_preset("albert-tiny")',
}


# The commands of the README that the demonstration runs as well, and what the other ones read.
DEMONSTRATED_ALREADY = re.compile(
    "create-pretraining|albert-tf (pretrain|export) |_dir=work/tickets|--train_file"
)
DEMONSTRATED = {
    "work/records": "records",
    "work/classifier": "classifier/seed-0",
    "work/models/topics": "saved_models/classifier",
}


def sentences(module: str) -> list[str]:
    """Sentences of the standard library's own documentation."""
    path = Path(os.__file__).with_name(f"{module}.py")
    text = re.sub(r"[^\x20-\x7e]+", " ", path.read_text(encoding="utf-8"))
    return re.findall(r"[A-Z][a-z]+ [a-z][a-z ,']{20,100}\.", text)


MODULES = ("argparse", "typing", "subprocess", "pickle", "tarfile", "optparse", "inspect")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A working folder with config.json, corpus.txt, heldout.txt, train.tsv, dev.tsv, new.tsv."""
    folder = tmp_path / "work"
    folder.mkdir()
    documents = [sentences(module) for module in MODULES]
    assert all(len(document) >= 10 for document in documents)
    for name, part in (("corpus", documents[:-1]), ("heldout", documents[-1:])):
        text = "\n\n".join("\n".join(document) for document in part)
        (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    rows = [(module, text) for module in MODULES[:2] for text in sentences(module)]
    random.Random(0).shuffle(rows)
    for name, part in (("train", rows[20:]), ("dev", rows[:20]), ("new", rows[:5])):
        with open(folder / f"{name}.tsv", "w", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE)
            writer.writerows([("label", "text"), *part])
    SMALLEST.replace(vocab_size=400, max_position_embeddings=128).to_json_file(
        str(folder / "config.json")
    )
    return folder


def environment(folder: Path, interpreter: str) -> dict[str, str]:
    """`python` is this interpreter, and finds the project; `albert-tf` is its command."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, given in (("python", ""), ("albert-tf", f"-c '{ENTRY_POINT}' ")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{interpreter}" {given}"$@"\n')
        program.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if name != LOG_LEVEL}
    return {**inherited, "PATH": path, "PYTHONPATH": str(ROOT)}


def blocks(language: str) -> list[str]:
    """The code blocks of one language in the README, and in the page about models, which uses what
    the README's commands make.
    """
    pages = (ROOT / "README.md", ROOT / "docs" / "models.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.fixture
def run(foreign_lines):
    """(command, folder, interpreter) -> its stdout; on stderr there may be only lines of the
    project.
    """
    return functools.partial(run_quietly, foreign_lines)


def run_quietly(
    foreign_lines: Callable[[str], list[str]], command: list[str], folder: Path, interpreter: str
) -> str:
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, interpreter),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-6000:]
    is_users_program = command[1] == "-c"  # It may import TensorFlow before this project.
    crashed = "training died" in result.stderr  # And went on, after the report of the crash.
    assert is_users_program or crashed or not foreign_lines(result.stderr), result.stderr[-6000:]
    return result.stdout


def in_a_shell(script: str) -> list[str]:
    """The command that runs commands of the README, its server on other ports."""
    ports = {"8500": str(free_port()), "8501": str(free_port())}
    script = re.sub("850[01]", lambda found: ports[found[0]], script)
    return ["bash", "-e", "-c", f"set -m; trap 'kill $(jobs -p) 2>/dev/null' EXIT\n{script}"]


def labels_in(output: str) -> list[str]:
    """Those of the answers that the server of the README gave."""
    answers, _ = json.JSONDecoder().raw_decode(output[output.index('{"predictions"') :])
    return [answer["label"] for answer in answers["predictions"]]


@pytest.mark.table
def test_the_commands_of_the_readme(folder, run, quick_python):
    script = "\n".join(blocks("sh"))
    for long, short in SHORTENED.items():
        script = script.replace(long, short)
    output = run(in_a_shell(script), folder, quick_python)
    assert "Pre-training" in output and "Held-out evaluation" in output
    written = folder / "work/classifier/predictions/tsv_predict.tsv"
    predictions = written.read_text(encoding="utf-8").splitlines()
    classes = [f"p({label})" for label in sorted(MODULES[:2])]
    assert predictions[0].split("\t") == ["id", "text", "prediction", *classes]
    assert len(predictions) == 1 + 5
    assert [label in MODULES[:2] for label in labels_in(output)] == [True, True]

    program = "\n".join(blocks("python"))
    for long, short in SHORTENED.items():
        program = program.replace(long, short)
    assert f"(1, {SMALLEST.hidden_size})" in run(["python", "-c", program], folder, sys.executable)


def test_the_demonstration(folder, run, quick_python):
    out = folder / "demo_out"
    command = [
        *("env", "PYTHON=python", f"CORPUS={folder}/corpus.txt"),
        "PRETRAINING=--num_train_steps=4 --num_warmup_steps=2 --steps_per_loop=2 --fast=off",
        "FINETUNING=--num_train_epochs=0.2 --seeds=2 --fast=off",
        *(str(ROOT / "scripts" / "speedrun.sh"), str(out)),
    ]
    output = run(command, folder, quick_python)
    table = output[output.index("step ") :]
    for step in ("text", "records", "pre-training", "fine-tuning", "export", "answers"):
        assert f"\n{step}" in table
    for row in ("from the weights", "from scratch", "words", "character 2-5-grams", "chance"):
        assert f"\n  {row} " in table
    differences = json.loads((out / "answers.json").read_text())["differences"]
    assert set(differences) == {"REST", "gRPC", "hub.load", "hub.KerasLayer"}
    assert max(differences["REST"], differences["gRPC"]) <= 1e-5
    assert max(differences["hub.load"], differences["hub.KerasLayer"]) <= 1e-4  # As float32 has it.
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "$ python" not in run(command, folder, quick_python)  # Nothing is run twice.

    script = "\n".join(blocks("sh")).replace("\\\n", "")
    lines = [line for line in script.split("\n") if line and not DEMONSTRATED_ALREADY.search(line)]
    assert len(lines) == 8
    script = "\n".join(lines).replace("--vocab_size=8000", "--vocab_size=400")
    for name, place in DEMONSTRATED.items():
        assert name in script
        script = script.replace(name, f"{out}/{place}")
    assert len(set(labels_in(run(in_a_shell(script), folder, quick_python)))) <= 2
    predicted = out / DEMONSTRATED["work/classifier"] / "predictions" / "tsv_predict.tsv"
    assert len(predicted.read_text(encoding="utf-8").splitlines()) == 1 + 5
