"""The class of which every format of model folders and checkpoints is a subclass: formats.py."""

from __future__ import annotations

import abc
import dataclasses
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


class Beside(NamedTuple):
    """Things that a folder gets with the weights, as far as its format has a place for them."""

    labels: Sequence[str] = ()  # Names of the classes in order; () where they are not known.
    metadata: Mapping[str, Any] = types.MappingProxyType({})  # Entries of model.json.
    vocab_file: str | None = None  # Folders of other software get theirs from `write_tokenizer`.
    tokenizer: dict[str, Any] | None = None  # The content of tokenizer_settings.json.
    dtype: str = "float32"  # One of the format's `dtypes`.


@dataclasses.dataclass(frozen=True)
class Source(abc.ABC):
    """A model folder or checkpoint, with the files next to its weights; a subclass per format."""

    path: str  # A folder, or the prefix of a checkpoint of google-research.
    config_file: str | None  # Path of its configuration, if there is one.
    vocab_file: str | None  # Path of its vocabulary, if there is one.

    format: ClassVar[str]  # The name that flags and messages have for it.
    config_name: ClassVar[str] = native.CONFIG_FILE
    # Patterns of weights without which a model of this format still answers as it should.
    may_lack: ClassVar[Sequence[str]] = ()
    dtypes: ClassVar[Sequence[str]] = ("float32",)  # Those that weights can be written in.
    # Whether the format is this project's, with a place for all models, metadata and settings.
    is_own: ClassVar[bool] = False

    @classmethod
    @abc.abstractmethod
    def recognize(cls, path: str, names: Collection[str]) -> Source | None:
        """The folder at a path, or the checkpoint of that prefix, if it is of this format; `names`
        are the names of the files in the folder.
        """

    def config(self) -> AlbertConfig:
        """The architecture; a UserError where there is no configuration next to the weights."""
        if self.config_file is None:
            raise UserError(
                f"{self.path} has no {self.config_name} next to it. Pass --config_file."
            )
        return AlbertConfig.from_json_file(self.config_file)

    @abc.abstractmethod
    def metadata(self) -> dict[str, Any]:
        """The content of model.json, or as much of it as another format tells, under its names."""

    def labels(self) -> list[str] | None:
        """The names of the classes in order, [] for numbers; None where they are not known."""
        return None

    def labels_as(self, labels: Sequence[str]) -> list[str] | None:
        """The names of the classes, as far as they can be compared with these of a task."""
        return self.labels()

    def has_labels(self, labels: Sequence[str]) -> bool:
        """Whether the classes may be these in this order; says so where only their order tells."""
        known, names = self.labels_as(labels), self.labels()
        if known is None and names and len(names) == len(labels):
            print(f"{self.path}: {', '.join(names)} are taken for {', '.join(labels)}.", flush=True)
        return known in (None, list(labels))

    @property
    @abc.abstractmethod
    def weights_files(self) -> list[str]:
        """The files with the values of the weights: one, or the parts of a large checkpoint."""

    @abc.abstractmethod
    def make_model(self, config: AlbertConfig) -> keras.Model:
        """A model of the class that the weights are for, with random weights."""

    @abc.abstractmethod
    def load(
        self,
        model: keras.Model,
        allow_missing: Sequence[str] = (),
        allow_unused: Sequence[str] = (),
    ) -> list[str]:
        """`weights.assign`, from a path of any format."""

    @classmethod
    @abc.abstractmethod
    def save(cls, model: keras.Model, folder: str, beside: Beside) -> list[str]:
        """Makes a folder, and returns lines for people about what has no place in it."""

    @classmethod
    def check(cls, model: keras.Model, folder: str, dtype: str) -> str:
        """Compares a written folder with the tensors that its software has for such a model. A
        UserError lists what differs; the result is a clause for people, "" for the native format.
        """
        return ""
