"""The file modules.json, by which sentence-transformers makes vectors of an encoder's outputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.config_file import read_json
from albert_tf.errors import UserError

MODULES_FILE, _LENGTH_FILE = "modules.json", "sentence_bert_config.json"
# Their modes of pooling -> ours.
_MODES = {("pooling_mode_mean_tokens",): "mean", ("pooling_mode_cls_token",): "first"}


class Pooling(NamedTuple):
    """The steps from an encoder's outputs to a sentence's vector."""

    mode: str = "mean"  # The mean over tokens, or the "first" token's.
    normalized: bool = False  # Whether vectors get length 1.
    others: Sequence[str] = ()  # Steps that are not computed here.


def read_pooling(directory: str) -> Pooling:
    """The steps by modules.json; means where a folder says nothing of vectors.

    Transformer, Pooling of the first token, Dense -> Pooling("first", False, ["Dense"]).
    """
    path = os.path.join(directory, MODULES_FILE)
    if not tf.io.gfile.exists(path):
        return Pooling()
    modules: Any = read_json(path, list)
    if not all(isinstance(module, dict) for module in modules):
        raise UserError(f"{path} is not a list of modules. Copy it again.")
    pooling = Pooling()
    for module in modules:
        kind = str(module.get("type")).rsplit(".", 1)[-1]
        if kind == "Pooling":
            config = os.path.join(directory, str(module.get("path")), "config.json")
            modes: Any = read_json(config)
            chosen = sorted(key for key in modes if key.startswith("pooling_mode_") and modes[key])
            # Vectors of several modes are concatenated there, which is not computed here.
            if tuple(chosen) in _MODES:
                pooling = pooling._replace(mode=_MODES[tuple(chosen)])
            else:
                pooling = pooling._replace(
                    others=[*pooling.others, f"{kind} ({', '.join(chosen)})"]
                )
        elif kind == "Normalize":
            pooling = pooling._replace(normalized=True)
        elif kind != "Transformer":
            pooling = pooling._replace(others=[*pooling.others, kind])
    return pooling


def read_length(directory: str) -> int | None:
    """The number of tokens that texts are cut to, if the folder says it."""
    path = os.path.join(directory, _LENGTH_FILE)
    if not tf.io.gfile.exists(path):
        return None
    length = read_json(path).get("max_seq_length")
    # 3 is room for [CLS], one token and [SEP].
    if length is not None and (type(length) is not int or length < 3):
        raise UserError(f"{path}: max_seq_length must be an integer from 3 on, not {length!r}.")
    return length
