"""The base class of all formats of model folders and checkpoints; subclasses in formats.py."""

from __future__ import annotations

import abc
import dataclasses
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from albert_tf.checkpoints import native
from albert_tf.checkpoints.weights import NOTHING, Allowed
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


class Beside(NamedTuple):
    """Data stored next to the weights, as far as the format supports it."""

    labels: Sequence[str] = ()  # Names of the classes in order; () if they are not known.
    metadata: Mapping[str, Any] = types.MappingProxyType({})  # Entries of model.json.
    vocab_file: str | None = None  # Other formats get their vocabulary from `write_tokenizer`.
    tokenizer: dict[str, Any] | None = None  # The content of tokenizer_settings.json.
    dtype: str = "float32"  # One of the format's `dtypes`.


@dataclasses.dataclass(frozen=True)
class Source(abc.ABC):
    """A model folder or checkpoint, with the files next to its weights; one subclass per format."""

    path: str  # A folder, or the prefix of a google-research checkpoint.
    config_file: str | None  # Path of its configuration, if there is one.
    vocab_file: str | None  # Path of its vocabulary, if there is one.

    format: ClassVar[str]  # The name used in flags and messages.
    config_name: ClassVar[str] = native.CONFIG_FILE
    # Patterns of weights that may be missing without changing the outputs of a model.
    may_lack: ClassVar[Sequence[str]] = ()
    dtypes: ClassVar[Sequence[str]] = ("float32",)  # The dtypes that weights can be written in.
    # Whether this is the project's own format, which stores all models, metadata and settings.
    is_own: ClassVar[bool] = False

    @classmethod
    @abc.abstractmethod
    def recognize(cls, path: str, names: Collection[str]) -> Source | None:
        """The folder at a path, or the checkpoint with that prefix, if it has this format; else
        None. `names` are the names of the files in the folder.
        """

    def config(self) -> AlbertConfig:
        """The architecture; raises UserError if there is no configuration next to the weights."""
        if self.config_file is None:
            raise UserError(
                f"{self.path} has no {self.config_name} next to it. Pass --config_file."
            )
        return AlbertConfig.from_json_file(self.config_file)

    @abc.abstractmethod
    def metadata(self) -> dict[str, Any]:
        """The content of model.json; other formats give the entries that they can, same keys."""

    def labels(self) -> list[str] | None:
        """The names of the classes in order, [] for numbers; None if they are not known."""
        return None

    def labels_as(self, labels: Sequence[str]) -> list[str] | None:
        """The names of the classes in the spelling of a task's; None if they cannot be compared."""
        return self.labels()

    def has_labels(self, labels: Sequence[str]) -> bool:
        """Whether the classes may be these, in this order; prints a line if only counts agree."""
        known, names = self.labels_as(labels), self.labels()
        if known is None and names and len(names) == len(labels):
            print(f"{self.path}: {', '.join(names)} are read as {', '.join(labels)}.", flush=True)
        return known in (None, list(labels))

    @property
    @abc.abstractmethod
    def weights_files(self) -> list[str]:
        """The files that hold the weights: one, or the parts of a large checkpoint."""

    @abc.abstractmethod
    def make_model(self, config: AlbertConfig) -> keras.Model:
        """A model of the class that the weights are for, with random weights."""

    @abc.abstractmethod
    def load(self, model: keras.Model, allowed: Allowed = NOTHING) -> list[str]:
        """`weights.assign` from this folder or checkpoint."""

    @classmethod
    @abc.abstractmethod
    def save(cls, model: keras.Model, folder: str, beside: Beside) -> list[str]:
        """Writes a folder; returns lines for the user about parts that it cannot store."""

    @classmethod
    def check(cls, model: keras.Model, folder: str, dtype: str) -> str:
        """Compares a written folder with the tensors that its software expects for such a model.
        A UserError lists differences; the result is a clause to print, "" for the native format.
        """
        return ""
