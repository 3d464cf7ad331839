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
    """Things that a folder gets with the weights, as far as its format has a place for them.

    Attributes:
      labels: names of the classes in order; () where they are not known.
      metadata: entries of model.json.
      vocab_file: the vocabulary, which folders of other software get from `write_tokenizer`.
      tokenizer: its settings, for tokenizer_settings.json.
      dtype: one of the format's `dtypes`.
    """

    labels: Sequence[str] = ()
    metadata: Mapping[str, Any] = types.MappingProxyType({})
    vocab_file: str | None = None
    tokenizer: dict[str, Any] | None = None
    dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class Source(abc.ABC):
    """A model folder or checkpoint, with the files next to its weights; a subclass per format.

    Attributes:
      path: a folder, or the prefix of a checkpoint of google-research.
      config_file: path of its configuration, if there is one.
      vocab_file: path of its vocabulary, if there is one.
      format: name of the format, as flags and messages have it.
      config_name: name of the file of the configuration.
      may_lack: patterns of weights that a class of this format may lack, and still is whole.
      dtypes: those that weights can be written in.
      is_own: whether the format is this project's, with a place for all its models, for metadata
        and for the settings of the tokenizer.
    """

    path: str
    config_file: str | None
    vocab_file: str | None

    format: ClassVar[str]
    config_name: ClassVar[str] = native.CONFIG_FILE
    may_lack: ClassVar[Sequence[str]] = ()
    dtypes: ClassVar[Sequence[str]] = ("float32",)
    is_own: ClassVar[bool] = False

    @classmethod
    @abc.abstractmethod
    def recognize(cls, path: str, names: Collection[str]) -> Source | None:
        """The folder or checkpoint at a path, if it is of this format.

        Args:
          path: a folder, or what may be the prefix of a checkpoint.
          names: names of the files in the folder.
        """

    def config(self) -> AlbertConfig:
        """The architecture; a UserError where there is no configuration next to the weights."""
        if self.config_file is None:
            raise UserError(
                f"{self.path} has no {self.config_name} next to it. Pass --config_file."
            )
        return AlbertConfig.from_json_file(self.config_file)

    def metadata(self) -> dict[str, Any]:
        """The content of model.json, which folders of this project have; {} in other formats."""
        return {}

    def labels(self) -> list[str] | None:
        """The names of the classes in order, [] for numbers; None where they are not known."""
        return None

    def labels_as(self, labels: Sequence[str]) -> list[str] | None:
        """The names of the classes, as far as they can be compared with these of a task."""
        return self.labels()

    @property
    @abc.abstractmethod
    def weights_files(self) -> list[str]:
        """The files with the values of the weights: one, or the parts of a large checkpoint."""

    @abc.abstractmethod
    def make_model(self, config: AlbertConfig, head: str | None = None) -> keras.Model:
        """A model of the class that the weights are for, with random weights.

        Native folders and Hugging Face's configurations name the class; the reference's checkpoints
        tell it by the names of their heads, except for heads of one output: `google.make_model`.
        """

    @abc.abstractmethod
    def load(
        self,
        model: keras.Model,
        allow_missing: Sequence[str] = (),
        allow_unused: Sequence[str] = (),
        use_averages: bool = False,
    ) -> list[str]:
        """`google.load`, from a path of any format.

        Raises:
          UserError: averages are asked for, which google-research's format alone has.
        """

    def _refuse_head(self, head: str | None) -> None:
        if head:
            raise UserError(
                f"--head={head} is for checkpoints of google-research, and {self.path} names its "
                "class itself. Leave it out."
            )

    def _refuse_averages(self, use_averages: bool) -> None:
        if use_averages:
            raise UserError(
                f"--use_averages is for checkpoints of google-research, and {self.path} is of the "
                f"format {self.format}. Leave it out."
            )

    @classmethod
    @abc.abstractmethod
    def save(cls, model: keras.Model, folder: str, beside: Beside) -> list[str]:
        """Makes a folder, and returns lines for people about what has no place in it.

        Args:
          model: the model.
          folder: the folder to make.
          beside: what goes with the weights.
        """

    @classmethod
    def check(cls, model: keras.Model, folder: str, dtype: str) -> str:
        """Compares a written folder with the tensors that its software has for such a model.

        Returns:
          A clause about it for people; "" for this project's own format, which needs no check.

        Raises:
          UserError: with a list of what differs.
        """
        return ""
