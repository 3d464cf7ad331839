"""Published weights by name: downloaded from the Hugging Face hub once, and cached."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import formats, huggingface, vocabulary
from albert_tf.config import AlbertConfig
from albert_tf.encoder import AlbertEncoder
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.presets import REPOSITORIES

_FILES = (huggingface.CONFIG_FILE, huggingface.WEIGHTS_FILE, vocabulary.SENTENCEPIECE)


def locate(name_or_path: str) -> formats.Source:
    """Where weights lie: a preset's, downloaded if need be, or those of a path (gs:// too).

    Args:
      name_or_path: name of a preset with published weights, or see `formats.recognise`.

    Raises:
      UserError: no such preset, nothing at the path, or not to be had (offline and not cached).
    """
    if name_or_path in REPOSITORIES and not tf.io.gfile.exists(name_or_path):
        return formats.recognise(_download(REPOSITORIES[name_or_path]))
    return formats.recognise(name_or_path)


def _download(repository: str) -> str:
    """The local folder of a repository's configuration, weights and vocabulary.

    What is in the cache is used without asking the hub, which is slow when it cannot be reached.
    """
    import huggingface_hub

    try:
        for name in _FILES:
            path = huggingface_hub.try_to_load_from_cache(repository, name)
            if not isinstance(path, str):
                path = huggingface_hub.hf_hub_download(repository, name)
    except Exception as error:  # Its own classes, the HTTP library's, OSError.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"{repository} is not in the cache and cannot be downloaded: {reason} Go online once "
            "(HF_HUB_OFFLINE unset; HF_ENDPOINT names a mirror), or pass the path of a folder with "
            f"{', '.join(_FILES)}."
        ) from None
    return os.path.dirname(path)


def from_preset(
    name_or_path: str,
    model_class: type[keras.Model] = AlbertEncoder,
    *,
    config: AlbertConfig | None = None,
    **arguments: Any,
) -> keras.Model:
    """A model with an encoder of published or own weights; heads that these lack are new.

        classifier = from_preset("albert-base-v2", AlbertClassifier, num_classes=3)

    Args:
      name_or_path: see `locate`.
      model_class: any model of the zoo.
      config: None takes the one beside the weights; another may differ in dropout, for example.
      **arguments: of the model's constructor.

    Raises:
      UserError: see `locate`; or the weights do not fit, with a list of what does not.
    """
    source = locate(name_or_path)
    model = model_class(config or source.config(), **arguments)
    formats.load_encoder(model, source.path)
    return model


def preset_vocabulary(name_or_path: str) -> str:
    """Path of the vocabulary that lies beside the weights."""
    source = locate(name_or_path)
    if source.vocab_file is None:
        raise UserError(f"{source.path} has no vocabulary beside it.")
    return source.vocab_file
