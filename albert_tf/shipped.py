"""Weights that are part of this package, each a folder in Hugging Face's format."""

from __future__ import annotations

import os

from albert_tf.checkpoints import huggingface

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights")


def shipped_folder(name: str) -> str | None:
    """The folder of a preset whose weights are in the package; None: they are not."""
    path = os.path.join(_FOLDER, name)
    return path if os.path.exists(os.path.join(path, huggingface.WEIGHTS_FILE)) else None


def shipped_names() -> list[str]:
    """The presets whose weights are in the package."""
    names = sorted(os.listdir(_FOLDER)) if os.path.isdir(_FOLDER) else []
    return [name for name in names if shipped_folder(name)]
