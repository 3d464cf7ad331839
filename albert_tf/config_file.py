"""Files of an architecture: albert_config.json and Hugging Face's config.json."""

from __future__ import annotations

import json
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.huggingface_config import from_huggingface

# Far more than any configuration: one with the names of 100,000 classes has a tenth.
_MOST_BYTES = 64 << 20


def read_config(path: str) -> AlbertConfig:
    """The architecture in an albert_config.json, or in a config.json, which has a model_type.

    Raises:
      UserError: see `read_json`; or the file describes no ALBERT.
    """
    values = read_json(path)
    if "model_type" in values:
        return from_huggingface(values, source=path)
    return AlbertConfig.from_dict(values, source=path)


def read_json(path: str, kind: type = dict) -> Any:
    """The content of a configuration file, whoever wrote it: an object, or another `kind`.

    Raises:
      UserError: the file is absent, too large, or no such JSON in UTF-8.
    """
    if not tf.io.gfile.exists(path):
        raise UserError(f"config file {path} does not exist. Pass that of albert_config.json.")
    if tf.io.gfile.isdir(path):
        raise UserError(f"config file {path} is a folder. Pass the albert_config.json in it.")
    size = tf.io.gfile.stat(path).length
    if size > _MOST_BYTES:
        raise UserError(f"config file {path} has {size:,} bytes, and is no configuration.")
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        values = json.loads(content.decode())
    except RecursionError:
        raise UserError(f"config file {path} is nested too deeply for a configuration.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"config file {path} is not UTF-8: {error}. Save it as UTF-8.") from None
    except ValueError as error:  # No JSON, or a number of thousands of digits.
        raise UserError(f"config file {path} is not valid JSON: {error}.") from None
    if not isinstance(values, kind):
        expected = "an object" if kind is dict else f"a {kind.__name__}"
        raise UserError(f"config file {path} holds a JSON {type(values).__name__}, not {expected}.")
    return values
