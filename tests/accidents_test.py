"""Programs that are killed, or find no room on the disk: the same command ends with the same
result, and leaves nothing behind.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TRAINING = (
    "--config_file={files}/config.json --train_batch_size=4 --num_train_steps=6 --fast=off "
    "--checkpoint_steps=2 --eval_steps=2 --steps_per_loop=1 --learning_rate=0.01 --packed=false "
    "--distribution=one_device --output_dir={out}"
)
COMMANDS = {
    "records": "data_pipeline.create_pretraining_data --input={files}/corpus.txt --dupe_factor=40 "
    "--vocab_file={files}/vocabulary/spiece.model --masking=static --max_seq_length=32 "
    "--num_processes=1 --shard_mb=0.05 --output_dir={out}",
    "export": "export.run_export --task=masked_lm --model_dir={files}/model --output_dir={out}",
    "pre-training": "albert_tf.run_pretraining --train_data={files}/records --num_warmup_steps=0 "
    f"--eval_data={{files}}/records {TRAINING}",
    "fine-tuning": "albert_tf.run_finetuning --task=tsv --train_file={files}/rows.tsv "
    "--dev_file={files}/rows.tsv --vocab_file={files}/vocabulary/spiece.model --max_seq_length=16 "
    f"{TRAINING}",
}


@pytest.fixture(scope="module")
def start(quick_python, files) -> Callable[..., subprocess.Popen]:
    """(name of COMMANDS, output folder) -> the program, which has begun."""

    def begin(name: str, out: Path) -> subprocess.Popen:
        words = COMMANDS[name].format(files=files, out=out).split()
        return subprocess.Popen(
            [quick_python, "-m", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


@pytest.fixture(scope="module")
def finish(start) -> Callable[..., float]:
    """(name, output folder) -> seconds of the program, which has to succeed."""

    def run(name: str, out: Path) -> float:
        began = time.monotonic()
        process = start(name, out)
        said = process.communicate(timeout=600)[0]
        assert process.returncode == 0, said[-3000:]
        return time.monotonic() - began

    return run


def result(name: str, out: Path, answers: Callable[[Path], str]) -> object:
    """What has to be equal: of an export its answers and the names of its files, else all bytes."""
    paths = [path for path in sorted(out.rglob("*")) if path.is_file()]
    if name == "export":
        return answers(out), [str(path.relative_to(out)) for path in paths]
    if name != "records":
        paths = [path for path in paths if path.parent.name.endswith("model")]
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def answers(quick_python) -> Callable[[Path], str]:
    """Folder of an export -> what export.predict prints."""

    def ask(folder: Path) -> str:
        words = [f"--model={folder}", "--text=the [MASK] sat", "--json"]
        return subprocess.check_output([quick_python, "-m", "export.predict", *words], text=True)

    return ask


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_moments(name, files, start, finish, answers, tmp_path):
    if name.endswith("ing") and not (files / "records").exists():
        finish("records", files / "records")
    seconds = finish(name, tmp_path / "whole")
    whole, draw, killed = result(name, tmp_path / "whole", answers), random.Random(name), 0
    assert whole
    for _ in range(12):
        process = start(name, tmp_path / "again")
        try:
            process.communicate(timeout=draw.uniform(0.1, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        else:
            assert process.returncode == 0
        done = ("manifest.json", "1", "model", "results.json")  # Of each program, the last.
        if any((tmp_path / "again" / each).exists() for each in done):
            shutil.rmtree(tmp_path / "again")
        else:
            killed += 1
    finish(name, tmp_path / "again")
    assert killed
    assert result(name, tmp_path / "again", answers) == whole
    left = [path.name for path in (tmp_path / "again").rglob("*")]
    assert not [each for each in left if re.search(r"partial|tmp", each)]
    versions = [path.name for path in (tmp_path / "again").iterdir() if path.name.isdigit()]
    assert name != "export" or versions == ["1"]


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Callable[[int], Path]]:
    """Kilobytes -> the folder of a disk of that size, which grows when it is called again."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def sized(kilobytes: int) -> Path:
        how = "remount," if os.path.ismount(folder) else ""
        command = ["mount", "-t", "tmpfs", "-o", f"{how}size={kilobytes}k", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, text=True)
        if mounted.returncode and not how:
            pytest.skip(f"NOT tried on a full disk: none can be mounted here: {mounted.stderr}")
        assert not mounted.returncode, mounted.stderr
        return folder

    yield sized
    if os.path.ismount(folder):
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
@pytest.mark.parametrize("kilobytes", [16, 48, 96, 160])
@pytest.mark.parametrize("name", ["export", "pre-training", "fine-tuning"])
def test_no_room_on_the_disk(name, kilobytes, files, start, finish, answers, small_disk, tmp_path):
    """At several sizes, which end it at several files."""
    if name.endswith("ing") and not (files / "records").exists():
        finish("records", files / "records")
    out = small_disk(kilobytes) / "out"
    process = start(name, out)
    said = process.communicate(timeout=600)[0]
    assert process.returncode in (2, 74), said[-3000:]
    assert "Traceback" not in said
    assert len(re.findall(r"^(?:.*: )?error: ", said, re.M)) == 1, said[-3000:]
    small_disk(65_536)
    finish(name, out)
    finish(name, tmp_path / "whole")
    assert result(name, out, answers) == result(name, tmp_path / "whole", answers)
