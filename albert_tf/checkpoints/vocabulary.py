"""The names of vocabulary files in model folders."""

from __future__ import annotations

import os

import tensorflow as tf

from albert_tf.errors import UserError
from data_pipeline.tokenizers.file_names import (
    GOOGLE_SENTENCEPIECE,
    KERASHUB_SENTENCEPIECE,
    SENTENCEPIECE,
    SETTINGS,
    WORDPIECE,
)

__all__ = [
    "GOOGLE_SENTENCEPIECE",
    "KERASHUB_SENTENCEPIECE",
    "SENTENCEPIECE",
    "SETTINGS",
    "WORDPIECE",
    "check_size",
    "find",
    "stored_name",
]


# Some models have a few more embeddings than pieces, for a divisible number or for added tokens.
# If over a tenth are unused, the file belongs to another model, or is truncated.
_MOST_UNUSED = 0.1


def stored_name(vocab_file: str) -> str:
    """The name of the copy in a model folder; a file ending in .txt is a WordPiece vocabulary."""
    return WORDPIECE if vocab_file.endswith(".txt") else SENTENCEPIECE


def check_size(vocab_file: str, num_pieces: int, vocab_size: int) -> None:
    """Raises UserError unless a vocabulary fits a model with `vocab_size` embeddings."""
    if not (1 - _MOST_UNUSED) * vocab_size <= num_pieces <= vocab_size:
        raise UserError(
            f"{vocab_file} has {num_pieces} pieces, and the model's vocab_size is {vocab_size}. "
            "Use the vocabulary that the model was trained with; if this is it, copy it again."
        )


def find(folder: str, *other_names: str) -> str | None:
    """Path of the vocabulary in a folder, if there is one."""
    paths = (os.path.join(folder, name) for name in (*other_names, SENTENCEPIECE, WORDPIECE))
    return next(filter(tf.io.gfile.exists, paths), None)
