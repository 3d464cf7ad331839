"""Files of an architecture: albert_config.json and Hugging Face's config.json."""

from __future__ import annotations

import json

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.huggingface_config import from_huggingface


def read_config(path: str) -> AlbertConfig:
    """The architecture in an albert_config.json, or in a config.json, which has a model_type.

    Raises:
      UserError: the file is absent, no JSON object, or describes no ALBERT.
    """
    if not tf.io.gfile.exists(path):
        raise UserError(f"config file {path} does not exist. Pass that of albert_config.json.")
    if tf.io.gfile.isdir(path):
        raise UserError(f"config file {path} is a folder. Pass the albert_config.json in it.")
    with tf.io.gfile.GFile(path) as file:
        try:
            values = json.load(file)
        except json.JSONDecodeError as error:
            raise UserError(f"config file {path} is not valid JSON: {error}.") from None
    if not isinstance(values, dict):
        raise UserError(f"config file {path} holds a JSON {type(values).__name__}, not an object.")
    if "model_type" in values:
        return from_huggingface(values, source=path)
    return AlbertConfig.from_dict(values, source=path)
