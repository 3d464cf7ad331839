"""The folder of a run: what was asked for, with which software, and whether an older run may be
continued there.

flags.json  environment.json  albert_config.json   what was run
run.json                                            what a continued run may not change
checkpoints/                                        to resume from
metrics.csv  tensorboard/  curves.png               how it went
model/                                              the result, see checkpoints/native.py
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

CONFIG_FILE = "albert_config.json"
RUN_FILE = "run.json"


def prepare(
    run_dir: str,
    config: AlbertConfig,
    settings: dict[str, Any],
    fixed: dict[str, Any],
    overwrite: bool,
) -> None:
    """Makes the folder of a run, or checks that the run in it can be continued.

    Args:
      run_dir: the folder.
      config: of the model.
      settings: flags to record.
      fixed: what decides the order of the data, by name; an interrupted run goes on with the same.
      overwrite: start over in a folder that holds a run.

    Raises:
      UserError: the folder holds a run of another model or on other data, or files that are no run.
    """
    if tf.io.gfile.exists(run_dir) and not tf.io.gfile.isdir(run_dir):
        raise UserError(f"--output_dir={run_dir} is a file. Name a folder.")
    config_path = os.path.join(run_dir, CONFIG_FILE)
    if tf.io.gfile.exists(config_path):
        if overwrite:
            tf.io.gfile.rmtree(run_dir)
        elif not _is_same_model(AlbertConfig.from_json_file(config_path), config):
            raise UserError(
                f"--output_dir={run_dir} holds a run of a model with another configuration. Name "
                "another folder, or pass --overwrite to delete that run and start over."
            )
        else:
            _check_fixed(run_dir, fixed)
    elif tf.io.gfile.exists(run_dir) and tf.io.gfile.listdir(run_dir):
        raise UserError(f"--output_dir={run_dir} is not empty and holds no run. Name a new folder.")
    tf.io.gfile.makedirs(run_dir)
    config.to_json_file(config_path)
    _write_json(os.path.join(run_dir, RUN_FILE), fixed)
    _write_json(os.path.join(run_dir, "flags.json"), settings)
    _write_json(os.path.join(run_dir, "environment.json"), environment())


def _is_same_model(one: AlbertConfig, other: AlbertConfig) -> bool:
    """Whether to recompute activations may change from start to start."""
    return one.replace(recompute=other.recompute) == other


def _check_fixed(run_dir: str, fixed: dict[str, Any]) -> None:
    changes = [
        f"{name} was {old!r} and is {fixed[name]!r}"
        for name, old in read(run_dir)[1].items()
        if name in fixed and fixed[name] != old
    ]
    if changes:
        raise UserError(
            f"--output_dir={run_dir} holds a run that was started differently: "
            f"{'; '.join(changes)}. It could not go on where it was. Use what it was started with, "
            "or another folder with --init_checkpoint for its weights, or --overwrite to delete it."
        )


def read(run_dir: str) -> tuple[AlbertConfig, dict[str, Any]]:
    """What `prepare` was given as `config` and `fixed`; raises UserError where there is no run."""
    if not tf.io.gfile.exists(os.path.join(run_dir, RUN_FILE)):
        raise UserError(f"--output_dir={run_dir} holds no run ({RUN_FILE}). Start one there.")
    with tf.io.gfile.GFile(os.path.join(run_dir, RUN_FILE)) as file:
        fixed = json.load(file)
    return AlbertConfig.from_json_file(os.path.join(run_dir, CONFIG_FILE)), fixed


def environment() -> dict[str, str]:
    """Versions of the software that a result depends on."""
    found = {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "platform": platform.platform(),
    }
    revision = _git_revision()
    return {**found, "git_revision": revision} if revision else found


def _git_revision() -> str | None:
    """Commit of this source code, with -dirty for local changes; None where it is not in git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    source = os.path.dirname(os.path.abspath(__file__))
    try:
        result = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _write_json(path: str, values: dict[str, Any]) -> None:
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(json.dumps(values, indent=2, sort_keys=True) + "\n")
