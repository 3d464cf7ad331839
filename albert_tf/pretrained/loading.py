"""Models from weights: published or shipped weights by name, the user's own by path."""

from __future__ import annotations

import difflib
import os
from typing import Any

import tensorflow as tf

import albert_tf
from albert_tf.checkpoints import formats, huggingface
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertEncoder
from albert_tf.pretrained.hub import (
    PUBLISHED,
    REPOSITORIES,
    download,
    download_repository,
    is_repository,
)
from albert_tf.pretrained.presets import BASELINE, PAPER_BASELINES, PRESETS

# The weights shipped with this package, each a folder in Hugging Face's format.
_SHIPPED = os.path.join(os.path.dirname(albert_tf.__file__), "weights")


def shipped_folder(name: str) -> str | None:
    """The folder of a preset whose weights are shipped with the package, or None."""
    path = os.path.join(_SHIPPED, name)
    return path if os.path.exists(os.path.join(path, huggingface.WEIGHTS_FILE)) else None


def shipped_names() -> list[str]:
    """The presets whose weights are shipped with the package."""
    names = sorted(os.listdir(_SHIPPED)) if os.path.isdir(_SHIPPED) else []
    return [name for name in names if shipped_folder(name)]


def locate(name_or_path: str) -> formats.Source:
    """The folder or checkpoint of a preset or of a Hugging Face hub repository, downloaded if
    necessary, or at a path (also gs://).

    Args:
      name_or_path: name of a preset with weights, in this package or published; a repository,
        "org/name" or "org/name@revision"; or see `formats.recognize`.

    Raises:
      UserError: there is no such preset, the path does not exist, or the download fails (offline
        and not cached).
    """
    # Paths take precedence, since a user's folder may have the name of a preset.
    found = (tf.io.gfile.exists(f"{name_or_path.rstrip('/')}{end}") for end in ("", ".index"))
    if any(found):
        return formats.recognize(name_or_path)
    if folder := shipped_folder(name_or_path):
        return formats.recognize(folder)
    name = name_or_path.removeprefix("albert/")  # The owner's name on the hub.
    if name in PUBLISHED:
        return formats.recognize(download(PUBLISHED[name]))
    if name in REPOSITORIES:
        source = formats.recognize(download_repository(REPOSITORIES[name]))
        _check_shape(source, name)
        return source
    _check_name(name)
    if is_repository(name_or_path):
        return formats.recognize(download_repository(name_or_path))
    return formats.recognize(name_or_path)  # Its error lists the valid kinds of paths.


def _check_shape(source: formats.Source, name: str) -> None:
    """Raises UserError unless the downloaded model has the preset's architecture."""
    found, expected = source.config().to_dict(), PRESETS[name].to_dict()
    for key in ("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "hidden_act"):
        if found[key] != expected[key]:
            raise UserError(
                f"{source.path}: {key} is {found[key]}, but {name} has {expected[key]}: the "
                "repository was changed, or HF_ENDPOINT names a mirror with other files."
            )


def _check_name(name: str) -> None:
    """Raises UserError if a string is, or almost is, the name of a preset."""
    word = name.lower()
    near = [] if "/" in word else difflib.get_close_matches(word, PRESETS, n=1)
    if not near:
        return
    preset = near[0]
    beginning = "" if preset == name else f"{name!r} does not exist. Did you mean {preset!r}? "
    if preset not in (*PUBLISHED, *REPOSITORIES, *shipped_names()):
        beginning += f"The preset {preset!r} is an architecture without weights to download. "
        if preset in PAPER_BASELINES:
            beginning += f"{BASELINE} "
        if preset.endswith("-zh"):
            beginning += (
                "google-research/albert publishes its weights as an archive: unpack that, and pass "
                "the prefix of its checkpoint. "
            )
    own = f"; this package has {', '.join(shipped_names())}" if shipped_names() else ""
    raise UserError(
        f"{beginning}Weights are downloaded for {', '.join((*PUBLISHED, *REPOSITORIES))} and the "
        f"hub's org/name{own}; or pass the path of a model folder or of a checkpoint."
    )


def from_preset(
    name_or_path: str,
    model_class: type[keras.Model] = AlbertEncoder,
    *,
    config: AlbertConfig | None = None,
    **arguments: Any,
) -> keras.Model:
    """A model whose encoder has published weights or your own, and whose heads are new.

    An AlbertPretrainer also loads its heads from the weights, if they have them.

        classifier = from_preset("albert-small-en", AlbertClassifier, num_classes=3)

    Args:
      name_or_path: see `locate`.
      model_class: AlbertEncoder or any model of `albert_tf`.
      config: None takes the one stored with the weights; another may change dropout, for example.
      arguments: of the model's constructor.

    Returns:
      A `model_class` whose variables exist.

    Raises:
      UserError: see `locate`; or the weights do not fit (it lists which).
    """
    source = locate(name_or_path)
    model = model_class(config or source.config(), **arguments)
    formats.load_start(model, source)
    return model


def preset_vocabulary(name_or_path: str) -> str:
    """Path of the vocabulary next to the weights.

    Raises:
      UserError: see `locate`; or there is no vocabulary.
    """
    source = locate(name_or_path)
    if source.vocab_file is None:
        raise UserError(
            f"{source.path} has no vocabulary. Copy the one that the model was trained with there, "
            "or pass its path instead."
        )
    return source.vocab_file
