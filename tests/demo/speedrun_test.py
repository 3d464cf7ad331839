"""The script of the demonstration: commands that exist, each run once; Python is a stand-in."""

from __future__ import annotations

import importlib
import os
import subprocess
from pathlib import Path

import pytest

from data_pipeline.command_line import flags

ROOT = Path(__file__).parents[2]
MODULES = [
    "demo.make_corpus",
    *["data_pipeline.create_pretraining_data"] * 2,
    "albert_tf.run_pretraining",
    *["albert_tf.run_finetuning"] * 2,
    *["export.run_export"] * 3,
    "demo.query",
    "demo.report",
]


@pytest.fixture
def speedrun(tmp_path):
    """(expected exit code, variables) -> commands, and stdout and stderr of the script.

    Its Python writes its arguments down, and fails where the module is that of FAILING.
    """
    log = tmp_path / "log"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" "" >>{log}\n[ "$2" != "$FAILING" ]\n')
    python.chmod(0o755)

    def run(code: int = 0, **variables: str) -> tuple[list[list[str]], str]:
        log.write_text("")
        result = subprocess.run(
            [ROOT / "scripts" / "speedrun.sh", tmp_path / "an out"],
            env={"PATH": os.environ["PATH"], "FAILING": "", "PYTHON": str(python), **variables},
            capture_output=True,
            text=True,
        )
        assert result.returncode == code, result.stderr
        commands = [command.split("\n") for command in log.read_text().split("\n\n") if command]
        return commands, result.stdout + result.stderr

    return run


def test_every_command_flag_and_file_exists(speedrun, new_flags, tmp_path):
    commands, shown = speedrun()
    assert [command[1] for command in commands] == MODULES
    for dash, module, *arguments in commands:
        with new_flags():
            importlib.import_module(module).define_flags()
            names = {flag.name for flag in flags.defined()}
        given = {argument.removeprefix("--").partition("=")[0] for argument in arguments}
        assert dash == "-m" and given <= names
    assert "$ python -m demo.make_corpus" in shown and "Next: python -m export.server" in shown
    flat = [argument for command in commands for argument in command]
    assert f"--eval_data={tmp_path}/an out/records/heldout" in flat
    ours, scratch = (set(command) for command in commands[4:6])
    assert {flag.partition("=")[0] for flag in ours ^ scratch} == {
        "--init_checkpoint", "--preset", "--learning_rate", "--output_dir",
    }  # fmt: skip
    paths = [argument.partition("=")[2] for argument in flat]
    inside = [path for path in paths if "/" in path and not path.startswith(str(tmp_path))]
    assert len(inside) >= 6 and all((ROOT / path).exists() for path in inside)


def test_a_finished_command_is_not_run_again(speedrun, tmp_path):
    speedrun()
    assert [command[1] for command in speedrun()[0]] == ["demo.report"]
    note = tmp_path / "an out" / "finished" / "pretraining"
    command, seconds = note.read_text().splitlines()
    assert command.startswith("albert_tf.run_pretraining --init_checkpoint=albert-small-en")
    assert 0 <= int(seconds) <= 60
    note.unlink()
    again, shown = speedrun()
    assert [command[1] for command in again] == ["albert_tf.run_pretraining", "demo.report"]
    assert f"$ python -m {command}" in shown


def test_further_flags_and_a_text_of_ones_own(speedrun):
    commands, _ = speedrun(
        CORPUS="my text/*.txt", PRETRAINING="--num_train_steps=4 --seed=1", FINETUNING="--seed=2"
    )
    assert commands[0][-1] == "--corpus=my text/*.txt"
    assert commands[3][-2:] == ["--num_train_steps=4", "--seed=1"]
    assert "--seed=2" in commands[4] and "--seed=2" in commands[5]


@pytest.mark.parametrize("changed", [{"CORPUS": "mine.txt"}, {"PRETRAINING": "--seed=1"}])
def test_other_settings_need_another_folder(speedrun, changed, tmp_path):
    speedrun()
    commands, shown = speedrun(code=2, **changed)
    assert not commands
    assert shown.splitlines()[-1].startswith(
        f"speedrun.sh: {tmp_path}/an out was made with other settings (see "
    )
