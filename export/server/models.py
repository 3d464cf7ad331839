"""The models that a server is told to serve: by flags, or by TF Serving's own configuration."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from data_pipeline.errors import UserError, needs_extra
from data_pipeline.files import storage


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """A served name, its folder, and which of the versions there are served.

    Attributes:
      name, base_path: the name that clients use, and the folder of the numbered versions.
      latest: the number of highest versions that are served; 0: all of them.
      specific: the versions that are served instead, if any are given.
      labels: label -> version, as in "stable" -> 3.
    """

    name: str
    base_path: str
    latest: int = 1
    specific: tuple[int, ...] = ()
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def wanted(self, existing: Sequence[int]) -> list[int]:
        """The versions to serve of those that exist, ascending: latest=2 of [1, 2, 5] -> [2, 5]."""
        if self.specific:
            return [version for version in existing if version in self.specific]
        return list(existing[-self.latest :] if self.latest else existing)


def parse_models(arguments: Sequence[str]) -> list[ModelConfig]:
    """["NAME=PATH", ...] -> models; raises UserError for anything else."""
    models = []
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or not path or not re.fullmatch(r"[\w.-]+", name):
            raise UserError(
                f"--model={argument} should be NAME=PATH, the name made of letters, digits, '_', "
                "'-' and '.'."
            )
        models.append(ModelConfig(name, path))
    return models


def read_config_file(path: str) -> list[ModelConfig]:
    """The models of a file for TF Serving's --model_config_file.

    Raises:
      UserError: it is missing, does not parse, or lists no models.
    """
    with needs_extra("serving", "--model_config_file"):
        from google.protobuf import text_format
        from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    try:
        text_format.Parse(storage.read_bytes(path).decode(), config)
    except text_format.ParseError as error:
        raise UserError(
            f"--model_config_file={path} is no text of TF Serving's ModelServerConfig: "
            f"{str(error).rstrip('. ')}."
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"--model_config_file={path} is no text in UTF-8.") from None
    models = []
    for model in config.model_config_list.config:
        if not model.name or not model.base_path:
            missing = "base_path" if model.name else "name"
            raise UserError(f"--model_config_file={path}: a model has no {missing}. Give it one.")
        policy = model.model_version_policy
        latest = 0 if policy.HasField("all") else max(1, policy.latest.num_versions)
        specific = tuple(policy.specific.versions)
        labels = dict(model.version_labels)
        models.append(ModelConfig(model.name, model.base_path, latest, specific, labels))
    return models


def check_models(models: Sequence[ModelConfig]) -> None:
    """Raises UserError unless there are models, each with a name of its own."""
    if not models:
        raise UserError(
            "No model to serve. Pass --model=NAME=PATH with a folder that run_export wrote, or "
            "--model_config_file."
        )
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"The model name {name!r} is given twice. Give each its own.")
