"""The names of vocabulary files in model folders."""

from __future__ import annotations

import os

import tensorflow as tf

from data_pipeline.tokenizers.file_names import SENTENCEPIECE, SETTINGS, WORDPIECE

__all__ = ["SENTENCEPIECE", "SETTINGS", "WORDPIECE", "find", "stored_name"]


def stored_name(vocab_file: str) -> str:
    """The name of a copy in a model folder: a file ending in .txt is a WordPiece vocabulary."""
    return WORDPIECE if vocab_file.endswith(".txt") else SENTENCEPIECE


def find(folder: str, *other_names: str) -> str | None:
    """Path of the vocabulary in a folder, if there is one."""
    paths = (os.path.join(folder, name) for name in (*other_names, SENTENCEPIECE, WORDPIECE))
    return next(filter(tf.io.gfile.exists, paths), None)
