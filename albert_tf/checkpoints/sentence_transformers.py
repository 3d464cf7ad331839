"""The file modules.json, by which sentence-transformers makes vectors of an encoder's outputs."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from albert_tf.config_file import read_json
from albert_tf.errors import UserError

MODULES_FILE = "modules.json"
_MEAN = ["pooling_mode_mean_tokens"]


def other_steps(directory: str) -> list[str]:
    """The steps from an encoder's outputs to a sentence's vector that are not their mean, which is
    all that is computed here; [] where there are none, or the folder says nothing of vectors.

    A folder with the steps Transformer, Pooling of the first token, Dense -> ["Pooling
    (pooling_mode_cls_token)", "Dense"].
    """
    path = os.path.join(directory, MODULES_FILE)
    if not tf.io.gfile.exists(path):
        return []
    modules: Any = read_json(path, list)
    if not all(isinstance(module, dict) for module in modules):
        raise UserError(f"{path} is not a list of modules. Copy it again.")
    steps = []
    for module in modules:
        kind = str(module.get("type")).rsplit(".", 1)[-1]
        if kind == "Pooling":
            config = os.path.join(directory, str(module.get("path")), "config.json")
            modes: Any = read_json(config)
            chosen = sorted(key for key in modes if key.startswith("pooling_mode_") and modes[key])
            steps += [] if chosen == _MEAN else [f"{kind} ({', '.join(chosen)})"]
        elif kind != "Transformer":
            steps.append(kind)
    return steps
