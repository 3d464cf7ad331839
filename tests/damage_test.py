"""Every damage of every file of every folder ends in the same result, or in a sentence about it.

`make test-long` damages each file in each way, through the programs and their flags; the table of
docs/benchmarks/notes.md has what came out. A few of them are tried in every run of the tests.
"""

from __future__ import annotations

import collections
import csv
import functools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DAMAGES = ("deleted", "empty", "half", "flipped", "a folder", "NULs")
# Kills a program of training before its fourth update.
KILLER = """
import os, runpy, signal, sys
from albert_tf.training.steps import Stepper
train, calls = Stepper.train, []
def killed(*args):
    calls.append(1)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return train(*args)
Stepper.train = killed
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
TRAINING = (
    "--train_batch_size=4 --num_train_steps=4 --eval_steps=1 --checkpoint_steps=1 --fast=off "
    "--keep_checkpoints=2 --steps_per_loop=1 --learning_rate=0.01 --distribution=one_device "
    "--packed=false"
)
PRETRAINING = (
    "albert_tf.run_pretraining --config_file={files}/config.json --train_data={files}/records "
    f"--eval_data={{files}}/records --num_warmup_steps=0 {TRAINING} --output_dir={{folder}}"
)
FINETUNING = (
    "albert_tf.run_finetuning --task=tsv --train_file={files}/rows.tsv --dev_file={files}/rows.tsv "
    "--config_file={files}/config.json --vocab_file={files}/vocabulary/spiece.model "
    f"--max_seq_length=16 {TRAINING} --output_dir={{folder}}"
)
RECORDS = (
    "data_pipeline.create_pretraining_data --input={files}/corpus.txt --max_seq_length=32 "
    "--num_processes=1 --overwrite"
)
CONVERT = "albert_tf.convert --input={folder} --output={out}/converted"


class Row(NamedTuple):
    """A folder of the matrix.

    Attributes:
      make: the command that makes it; with "killed " in front, which is killed on its way.
      read: the command that is run on the damaged folder.
      result: the files of the result, as a pattern; None: what the command prints.
      silent: (file, damage), as patterns, that nobody can see: of other software's folders, which
        have no hashes, numbers that are still finite and text that is still text.
      unread: names of files that no command reads.
    """

    make: str
    read: str
    result: str | None
    silent: tuple[tuple[str, str], ...] = ()
    unread: str = "$"


ROWS = {
    "pre-training run": Row(
        f"killed {PRETRAINING}", PRETRAINING, "{folder}/model/*", unread="tensorboard|run.lock"
    ),
    "fine-tuning run": Row(
        f"killed {FINETUNING}", FINETUNING, "{folder}/*model/*", unread="tensorboard|run.lock"
    ),
    "records, inspected": Row(
        f"{RECORDS} --vocab_file={{files}}/vocabulary/spiece.model --output_dir={{folder}}",
        "data_pipeline.inspect_records --data={folder}",
        None,
    ),
    "records, made again": Row(
        f"{RECORDS} --vocab_file={{files}}/vocabulary/spiece.model --output_dir={{folder}}",
        f"{RECORDS} --vocab_file={{files}}/vocabulary/spiece.model --output_dir={{folder}}",
        "{folder}/*",
    ),
    "vocabulary": Row(
        "data_pipeline.train_vocabulary --input={files}/corpus.txt --vocab_size=48 "
        "--output_dir={folder}",
        f"{RECORDS} --vocab_file={{folder}}/spiece.model --output_dir={{out}}",
        "{out}/*",
    ),
    "fine-tuning data": Row(
        "albert_tf.create_finetuning_data --task=tsv --train_file={files}/rows.tsv "
        "--vocab_file={files}/vocabulary/spiece.model --max_seq_length=16 --output_dir={folder}",
        FINETUNING.replace("--train_file={files}/rows.tsv", "--train_records={folder}")
        .replace("--output_dir={folder}", "--output_dir={out}")
        .replace("num_train_steps=4", "num_train_steps=1"),
        "{out}/model/*",
    ),
    "model": Row(
        "albert_tf.convert --input={files}/model --format=native --output={folder}",
        f"{CONVERT} --format=huggingface",
        "{out}/converted/*",
    ),
    "Hugging Face": Row(
        "albert_tf.convert --input={files}/model --format=huggingface --output={folder}",
        f"{CONVERT} --format=native",
        "{out}/converted/*",
        silent=(("model.safetensors", "flipped|NULs"), ("config.json|spiece.model", "flipped")),
    ),
    "google": Row(
        "albert_tf.convert --input={files}/model --format=google --output={folder}",
        f"{CONVERT} --format=native",
        "{out}/converted/*",
        silent=(("albert_config.json|30k-clean.model", "flipped"),),
    ),
    "export": Row(
        "export.run_export --task=masked_lm --model_dir={files}/model --output_dir={folder}",
        "export.predict --model={folder} --text=the_[MASK]_sat",
        None,
    ),
}


def damage(path: Path, kind: str) -> None:
    """Damages a file, in the same way in every run."""
    content = path.read_bytes()
    if kind in ("deleted", "a folder"):
        path.unlink()
        if kind == "a folder":
            path.mkdir()
        return
    changed = bytearray(content)
    draw = random.Random(zlib.crc32(path.name.encode()))
    for _ in range(20 if kind == "flipped" and content else 0):
        bit = draw.randrange(8 * len(content))
        changed[bit // 8] ^= 1 << bit % 8
    parts = {"empty": b"", "half": content[: len(content) // 2], "NULs": bytes(len(content))}
    path.write_bytes(parts.get(kind, bytes(changed)))


class Trials:
    """Folders of one row, damaged and read.

    Args:
      run: (module, *arguments) -> result of a program.
      kill: the same, of a program that is killed on its way.
      files: what the commands read.
      place: an empty folder.
      name: of the row.
    """

    def __init__(self, run: Callable, kill: Callable, files: Path, place: Path, name: str) -> None:
        self.row, self._run, self._files, self._place = ROWS[name], run, files, place
        self.made = place / "made"
        is_killed = self.row.make.startswith("killed ")
        make, expected = (kill, -signal.SIGKILL) if is_killed else (run, 0)
        made = self._command(make, self.row.make.removeprefix("killed "), self.made, place)
        assert made.returncode == expected, made.stdout + made.stderr
        names = (path.relative_to(self.made) for path in self.made.rglob("*") if path.is_file())
        self.names = sorted(str(name) for name in names if not re.match(self.row.unread, str(name)))
        assert self.names

    @functools.cached_property
    def _right(self) -> Any:
        """The result of the row's command on the folder as it was made."""
        code, result, said = self._result(None)
        assert code == 0, said
        return result

    def _command(self, run: Callable, command: str, folder: Path, out: Path) -> Any:
        words = command.format(files=self._files, folder=folder, out=out).split()
        return run(*(word.replace("_[MASK]_", " [MASK] ") for word in words))

    def _result(self, damaged: tuple[str, str] | None) -> tuple[int, Any, str]:
        """Exit code, result and output of the row's command on a copy of the folder."""
        folder, out = self._place / "folder", self._place / "out"
        for path in (folder, out):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.made, folder)
        out.mkdir()
        if damaged:
            damage(folder / damaged[0], damaged[1])
        ended = self._command(self._run, self.row.read, folder, out)
        said = ended.stdout + ended.stderr
        if self.row.result is None:
            return ended.returncode, ended.stdout, said
        pattern = self.row.result.format(folder=folder, out=out)
        paths = Path("/").glob(pattern.lstrip("/"))
        found: dict[str, Any] = {
            str(path).removeprefix(str(self._place)): path.read_bytes()
            for path in paths
            if path.is_file()
        }
        metrics = folder / "metrics.csv"
        if metrics.is_file():
            with open(metrics, encoding="utf-8", errors="replace", newline="") as file:
                rows = list(csv.DictReader(file))
            found["metrics"] = [
                {name: value for name, value in row.items() if name != "tokens_per_second"}
                for row in rows
            ]
        return ended.returncode, found, said

    def outcome(self, name: str, kind: str) -> str:
        """The kind of end that the row's command has with one damage: "same", "refused" with one
        sentence, "told" (another result, and a line on the file), "listed" (`Row.silent`); or a
        description of what should not be.
        """
        code, result, said = self._result((name, kind))
        place = f"{name}, {kind}"
        known = [os.path.basename(name), re.sub(r"\.(index|data-.*)$", "", os.path.basename(name))]
        if code == 0:
            if result == self._right:
                return "same"
            if any(
                each in said for each in (*(f"{name} is " for name in known), "vocabulary: none")
            ):
                return "told"
            silent = any(
                re.fullmatch(names, os.path.basename(name)) and re.fullmatch(kinds, kind)
                for names, kinds in self.row.silent
            )
            return "listed" if silent else f"SILENT: {place}: {said[-300:]}"
        errors = [line for line in said.splitlines() if ": error: " in line]
        folder = str(self._place / "folder")
        if code != 2 or "Traceback" in said or len(errors) != 1:
            return f"UNGUARDED: {place}: exit {code}: {said[-1500:]}"
        if ".. " in errors[0] or not (folder in errors[0] or any(n in errors[0] for n in known)):
            return f"UNCLEAR: {place}: {errors[0]}"
        return "refused"


@pytest.mark.parametrize(
    "name, damaged",
    {
        "vocabulary": {"spiece.model": "flipped", "tokenizer_settings.json": "NULs"},
        "records, inspected": {
            "label_counts.json": "half",
            "manifest.json": "NULs",
            "tokenizer_settings.json": "deleted",
        },
        "model": {
            "model.json": "a folder",
            "albert_config.json": "flipped",
            "spiece.model": "empty",
            "model.ckpt.data-00000-of-00001": "flipped",
        },
        "Hugging Face": {"config.json": "NULs", "model.safetensors": "half"},
        "google": {"albert_config.json": "a folder"},
    }.items(),
)
def test_some_damages(name, damaged, result_of, files, tmp_path):
    def run(*words: str) -> subprocess.CompletedProcess:
        try:
            return result_of(*words)
        except BaseException:
            return subprocess.CompletedProcess(words, 1, "", traceback.format_exc())

    trials = Trials(run, run, files, tmp_path, name)
    for each, kind in damaged.items():
        assert trials.outcome(each, kind) == "refused"


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_every_damage_of_every_file(name, quick_python, files, tmp_path):
    def run(*words: str, program: tuple[str, ...] = ("-m",)) -> subprocess.CompletedProcess:
        return subprocess.run(
            [quick_python, *program, *words], capture_output=True, text=True, timeout=600
        )

    if not (files / "records").exists():
        records = RECORDS.format(files=files).split()
        vocab_file = f"--vocab_file={files}/vocabulary/spiece.model"
        assert not run(*records, vocab_file, f"--output_dir={files}/records").returncode
    trials = Trials(run, lambda *words: run(*words, program=("-c", KILLER)), files, tmp_path, name)
    found = [trials.outcome(each, kind) for each in trials.names for kind in DAMAGES]
    wrong = [each for each in found if each.isupper() or ":" in each]
    counts = collections.Counter(each.partition(":")[0] for each in found)
    with open(os.environ.get("DAMAGE_TABLE", os.devnull), "a", encoding="utf-8") as table:
        print(name, len(found), dict(counts), *wrong, sep="\n  ", file=table)
    print(name, len(found), dict(counts), file=sys.stderr)
    assert not wrong, "\n".join(wrong)
