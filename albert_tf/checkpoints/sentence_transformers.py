"""The files that tell sentence-transformers how to make vectors from an encoder's outputs.

modules.json, 1_Pooling/config.json       the steps
sentence_bert_config.json                 lengths; also under the names of its older classes
config_sentence_transformers.json         prompts that go before every text
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.config_file import read_json
from albert_tf.errors import UserError

MODULES_FILE, _PROMPTS_FILE = "modules.json", "config_sentence_transformers.json"
_KINDS = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
_LENGTH_FILES = tuple(f"sentence_{kind}_config.json" for kind in _KINDS)  # First found is read.
_TOKENIZER_FILE = "tokenizer_config.json"
_MODES = {"mean": "mean", "cls": "first"}  # sentence-transformers' pooling modes -> ours.


class Pooling(NamedTuple):
    """The steps from an encoder's outputs to a sentence's vector."""

    mode: str = "mean"  # "mean" over tokens, or the "first" token.
    normalized: bool = False  # Whether vectors are scaled to length 1.
    others: Sequence[str] = ()  # Steps that this project does not support.


def read_pooling(directory: str) -> Pooling:
    """The steps that modules.json lists; the default, mean pooling, if there is no such file.

    Transformer, Pooling of the first token, Dense -> Pooling("first", False, ["Dense"]).
    """
    path = os.path.join(directory, MODULES_FILE)
    if not tf.io.gfile.exists(path):
        return Pooling()
    modules: Any = read_json(path, list)
    if not all(isinstance(module, dict) for module in modules):
        raise UserError(f"{path} is not a list of modules. Copy it again.")
    pooling, others = Pooling(), _before_the_encoder(directory)
    for module in modules:
        kind = str(module.get("type")).rsplit(".", 1)[-1]
        if kind == "Pooling":
            modes = _modes(os.path.join(directory, str(module.get("path")), "config.json"))
            # With several modes, sentence-transformers concatenates the vectors: unsupported.
            if len(modes) == 1 and modes[0] in _MODES:
                pooling = pooling._replace(mode=_MODES[modes[0]])
            else:
                others.append(f"{kind} ({', '.join(modes)})")
        elif kind == "Normalize":
            pooling = pooling._replace(normalized=True)
        elif kind != "Transformer":
            others.append(kind)
    return pooling._replace(others=others)


def _modes(path: str) -> list[str]:
    """The modes of a Pooling: in one key since version 5.4, before that in one key per mode."""
    config: Any = read_json(path)
    found = config.get("pooling_mode")
    if found is None:
        keys = [key for key in sorted(config) if key.startswith("pooling_mode_") and config[key]]
        found = [re.sub("^pooling_mode_|_tokens?$", "", key) for key in keys] or "mean"
    if not isinstance(found, (str, list)):
        raise UserError(f"{path}: pooling_mode is {found!r:.80}, not a name. Copy it again.")
    return [found] if isinstance(found, str) else [str(mode) for mode in found]


def _before_the_encoder(directory: str) -> list[str]:
    """Preprocessing of a text before the tokenizer, none of which this project supports."""
    others, config = [], _read_if_there(directory, _PROMPTS_FILE)
    prompts, name = config.get("prompts") or {}, config.get("default_prompt_name")
    if not isinstance(prompts, dict) or not isinstance(name, str | None):
        path = os.path.join(directory, _PROMPTS_FILE)
        raise UserError(f"{path} does not map names to prompts. Copy it again.")
    is_cased = _read_if_there(directory, _TOKENIZER_FILE).get("do_lower_case") is False
    if is_cased and _read_if_there(directory, *_LENGTH_FILES).get("do_lower_case"):
        others.append("do_lower_case")
    if prompt := prompts.get(name):
        others.append(f"the prompt {prompt!r} before every text")
    return others


def read_length(directory: str, positions: int) -> int | None:
    """The number of tokens that texts are truncated to, if the folder states it. The tokenizer's
    length counts only if it is below the model's `positions`.
    """
    length = _read_if_there(directory, *_LENGTH_FILES).get("max_seq_length")
    if length is None and tf.io.gfile.exists(os.path.join(directory, MODULES_FILE)):
        longest = _read_if_there(directory, _TOKENIZER_FILE).get("model_max_length")
        # Tokenizers write 1e30 for "no limit".
        is_limit = isinstance(longest, int) and longest < positions
        length = longest if is_limit else None
    # 3 leaves room for [CLS], one token and [SEP].
    if length is not None and (type(length) is not int or length < 3):
        raise UserError(
            f"{directory}: the length of its texts (max_seq_length in {_LENGTH_FILES[0]}, or "
            f"model_max_length in {_TOKENIZER_FILE}) must be an integer from 3 up, not {length!r}."
        )
    return length


def _read_if_there(directory: str, *names: str) -> dict[str, Any]:
    """The content of the first of these files that exists in a folder; {} if none does."""
    paths = (os.path.join(directory, name) for name in names)
    found = next((path for path in paths if tf.io.gfile.exists(path)), None)
    return read_json(found) if found else {}
