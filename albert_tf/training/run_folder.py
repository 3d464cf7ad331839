"""The folder of a run: what was asked for, with which software, and whether an older run may be
continued there.

flags.json  environment.json  albert_config.json   what was run
checkpoints/                                        to resume from
metrics.csv  tensorboard/  curves.png               how it went
model/                                              the result, see checkpoints/native.py
"""

from __future__ import annotations

import json
import os
import platform
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

CONFIG_FILE = "albert_config.json"


def prepare(run_dir: str, config: AlbertConfig, settings: dict[str, Any], overwrite: bool) -> None:
    """Makes the folder of a run, or checks that the run in it can be continued.

    Args:
      run_dir: the folder.
      config: of the model.
      settings: flags to record.
      overwrite: start over in a folder that holds a run.

    Raises:
      UserError: the folder holds a run of another model, or files that are no run.
    """
    if tf.io.gfile.exists(run_dir) and not tf.io.gfile.isdir(run_dir):
        raise UserError(f"--output_dir={run_dir} is a file. Name a folder.")
    config_path = os.path.join(run_dir, CONFIG_FILE)
    if tf.io.gfile.exists(config_path):
        if overwrite:
            tf.io.gfile.rmtree(run_dir)
        elif AlbertConfig.from_json_file(config_path) != config:
            raise UserError(
                f"--output_dir={run_dir} holds a run of a model with another configuration. Name "
                "another folder, or pass --overwrite to delete that run and start over."
            )
    elif tf.io.gfile.exists(run_dir) and tf.io.gfile.listdir(run_dir):
        raise UserError(f"--output_dir={run_dir} is not empty and holds no run. Name a new folder.")
    tf.io.gfile.makedirs(run_dir)
    config.to_json_file(config_path)
    _write_json(os.path.join(run_dir, "flags.json"), settings)
    _write_json(os.path.join(run_dir, "environment.json"), environment())


def environment() -> dict[str, str]:
    """Versions of the software that a result depends on."""
    return {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "platform": platform.platform(),
    }


def _write_json(path: str, values: dict[str, Any]) -> None:
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(json.dumps(values, indent=2, sort_keys=True) + "\n")
