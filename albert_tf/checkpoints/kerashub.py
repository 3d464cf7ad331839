"""KerasHub's presets of ALBERT, folders of JSON and HDF5:

config.json, model.weights.h5             the backbone
task.json, task.weights.h5                a head: masked LM, or classification
tokenizer.json, assets/tokenizer/vocabulary.spm
preprocessor.json                         the sequence length of a task
metadata.json
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import kerashub_weights, target_tensors, vocabulary
from albert_tf.checkpoints.huggingface import kind_to_write
from albert_tf.checkpoints.huggingface_config import as_groups
from albert_tf.checkpoints.kerashub_weights import (
    PROJECTION,
    SHARDS_FILE,
    TASK_WEIGHTS_FILE,
    WEIGHTS_FILE,
    KerasHubWeights,
)
from albert_tf.checkpoints.names import check_sharing
from albert_tf.checkpoints.source import Beside, Source
from albert_tf.checkpoints.weights import NOTHING, Allowed, assign
from albert_tf.config import AlbertConfig
from albert_tf.config_file import check_groups_agree, read_json
from albert_tf.errors import UserError
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertModel,
    AlbertPretrainer,
    AlbertSentenceEncoder,
)
from data_pipeline.files import atomic_files

CONFIG_FILE, TASK_FILE, _PREPROCESSOR_FILE = "config.json", "task.json", "preprocessor.json"
_SOFTWARE = "KerasHub's AlbertBackbone"
# KerasHub's task class -> ours.
_TASKS = {"AlbertMaskedLM": AlbertPretrainer, "AlbertTextClassifier": AlbertClassifier}
# AlbertMaskedLM -> albert_masked_lm.
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Field of AlbertConfig -> entry of config.json.
_FIELDS = {
    "vocab_size": "vocabulary_size",
    "embedding_size": "embedding_dim",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "num_hidden_groups": "num_groups",
    "inner_group_num": "num_inner_repetitions",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}


class KerasHub(Source):
    """A KerasHub preset of an AlbertBackbone, or of a task that contains one."""

    format = "kerashub"
    may_lack = ("^sentence_order/",)

    @classmethod
    def recognize(cls, path: str, names: Collection[str]) -> Source | None:
        if CONFIG_FILE not in names or {WEIGHTS_FILE, SHARDS_FILE}.isdisjoint(names):
            return None
        vocab_file = os.path.join(path, vocabulary.KERASHUB_SENTENCEPIECE)
        found = vocab_file if tf.io.gfile.exists(vocab_file) else None
        return cls(path, os.path.join(path, CONFIG_FILE), found)

    def config(self) -> AlbertConfig:
        assert self.config_file is not None
        name, values = _read(self.config_file)
        if name != "AlbertBackbone":
            raise UserError(
                f"{self.config_file}: only KerasHub presets of AlbertBackbone are supported, not "
                f"of {name}."
            )
        missing = [theirs for theirs in _FIELDS.values() if theirs not in values]
        if missing:
            raise UserError(f"{self.config_file} lacks {', '.join(missing)}. Copy it again.")
        fields = {ours: values[theirs] for ours, theirs in _FIELDS.items()}
        # KerasHub has a single dropout rate for both.
        fields["attention_probs_dropout_prob"] = fields["hidden_dropout_prob"]
        config = AlbertConfig.from_dict(fields, self.config_file)
        # KerasHub always has the projection; in this project it is optional if E == H.
        if config.embedding_size != config.hidden_size:
            return config
        is_identity = KerasHubWeights(self.path).projects_by_identity()
        return config.replace(always_project_embeddings=not is_identity)

    def metadata(self) -> dict[str, Any]:
        path = os.path.join(self.path, _PREPROCESSOR_FILE)
        _, values = _read(path) if tf.io.gfile.exists(path) else ("", {})
        return {"max_seq_length": values["sequence_length"]} if "sequence_length" in values else {}

    @property
    def weights_files(self) -> list[str]:
        paths = (os.path.join(self.path, name) for name in (WEIGHTS_FILE, TASK_WEIGHTS_FILE))
        return [path for path in paths if tf.io.gfile.exists(path)]

    def make_model(self, config: AlbertConfig) -> AlbertModel:
        path = os.path.join(self.path, TASK_FILE)
        if not tf.io.gfile.exists(path):
            return AlbertEncoder(config)
        name, values = _read(path)
        if name not in _TASKS:
            raise UserError(f"{path}: the task {name} is not one of {', '.join(_TASKS)}.")
        if name == "AlbertMaskedLM":
            return AlbertPretrainer(config)
        activation = values.get("activation", "linear")
        if activation not in ("linear", "softmax", "sigmoid"):
            raise UserError(f"{path}: activation {activation!r} has no counterpart here.")
        several = activation == "sigmoid"
        number, rate = values.get("num_classes"), values.get("dropout")
        if type(number) is not int or number < 1 or rate is None:
            raise UserError(f"{path} has no num_classes or no dropout. Copy it again.")
        return AlbertClassifier(config, number, rate, several)

    def load(self, model: AlbertModel, allowed: Allowed = NOTHING) -> list[str]:
        weights, names = KerasHubWeights(self.path), kerashub_weights.stored_names(model.config)
        if not model.config.has_embedding_projection and weights.projects_by_identity():
            allowed = allowed._replace(unused=[*allowed.unused, f"^{PROJECTION}/"])
        return assign(
            model.variables, weights, lambda ours: (names.get(ours, ours), False), allowed
        )

    @classmethod
    def save(cls, model: AlbertModel, folder: str, beside: Beside) -> list[str]:
        task = _check(model, beside)
        config = as_groups(model.config)
        tf.io.gfile.makedirs(folder)
        count = kerashub_weights.write(model, folder)
        values = {theirs: getattr(config, ours) for ours, theirs in _FIELDS.items()}
        backbone = _object("AlbertBackbone", "float32", **values)
        _write(folder, CONFIG_FILE, backbone)
        _write(folder, "metadata.json", {
            "keras_version": "3.15.1",  # The version whose file format this follows.
            "keras_hub_version": "0.32.0",
            "parameter_count": count,
            "tasks": ["MaskedLM", "TextClassifier"],
        })  # fmt: skip
        tokenizer = _object("AlbertTokenizer", "int32", config_file="tokenizer.json", proto=None)
        if beside.vocab_file:
            _write(folder, "tokenizer.json", tokenizer)
        if task:
            length = beside.metadata.get("max_seq_length", config.max_position_embeddings)
            preprocessor = _object(
                f"{task}Preprocessor", "float32", tokenizer=tokenizer,
                config_file=_PREPROCESSOR_FILE, sequence_length=length, truncate="round_robin",
            )  # fmt: skip
            if beside.vocab_file:
                _write(folder, _PREPROCESSOR_FILE, preprocessor)
            entries: dict[str, Any] = {"preprocessor": preprocessor if beside.vocab_file else None}
            if isinstance(model, AlbertClassifier):
                activation = "sigmoid" if model.multi_label else "linear"
                entries.update(num_classes=model.num_classes, activation=activation)
                entries["dropout"] = model.dropout_rate
            _write(folder, TASK_FILE, _object(task, None, backbone=backbone, **entries))
        return _lost(model, beside)

    @classmethod
    def check(cls, model: AlbertModel, folder: str, dtype: str) -> str:
        return f", {target_tensors.check_kerashub(folder)} tensors as KerasHub has them"


def _check(model: AlbertModel, beside: Beside) -> str | None:
    """KerasHub's task class for a model, or None for a backbone; raises UserError for a model that
    KerasHub's classes cannot compute.
    """
    config = model.config
    check_sharing(config, _SOFTWARE)
    groups = as_groups(config)
    check_groups_agree(groups.num_hidden_layers, groups.num_hidden_groups, _SOFTWARE)
    is_albert = kind_to_write(model, beside.metadata.get("model_type")) == "albert"
    computed = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "tie_word_embeddings": True}
    found = {name: getattr(config, name) for name in computed}
    others = [f"{name} {value}" for name, value in found.items() if value != computed[name]]
    if others or not is_albert:
        raise UserError(
            "KerasHub presets can hold only ALBERTs with gelu, layer_norm_eps 1e-12 and tied "
            f"embeddings, not this model ({', '.join(others) or 'a BERT or ELECTRA'}). Use "
            "another format."
        )
    if (beside.vocab_file or "").endswith(".txt"):
        raise UserError(
            f"{beside.vocab_file}: KerasHub's AlbertTokenizer reads SentencePiece models only. Use "
            "another format."
        )
    for name, ours in _TASKS.items():
        if type(model) is ours:
            return name
    if type(model) in (AlbertEncoder, AlbertSentenceEncoder):
        return None
    raise UserError(
        f"{type(model).__name__} has no counterpart in KerasHub, which has only the backbone, "
        f"{', '.join(_TASKS)}. Use another format."
    )


def _read(path: str) -> tuple[str, dict[str, Any]]:
    """The class and the configuration of a Keras 3 object."""
    stored = read_json(path)
    name, values = stored.get("class_name"), stored.get("config")
    if not isinstance(name, str) or not isinstance(values, dict):
        raise UserError(f"{path} does not hold a class with its configuration. Copy it again.")
    return name, values


def _object(name: str, dtype: str | None, **config: Any) -> dict[str, Any]:
    """The JSON of a Keras 3 object; `dtype` names its policy, None for a model."""
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": dtype}}
    module = _WORD.sub("_", name).lower()
    common: dict[str, Any] = {"name": module}
    if dtype:
        common.update(trainable=True, dtype={**policy, "registered_name": None})
    return {
        "module": f"keras_hub.src.models.albert.{module}",
        "class_name": name,
        "config": {**common, **config},
        "registered_name": f"keras_hub>{name}",
    }


def _write(folder: str, name: str, content: dict[str, Any]) -> None:
    atomic_files.write_json(os.path.join(folder, name), content)


def _lost(model: AlbertModel, beside: Beside) -> list[str]:
    """Lines about parts that a preset cannot store."""
    config, lines = model.config, []
    if isinstance(model, AlbertPretrainer):
        lines.append("kerashub has no sentence-order head: it is left out.")
    if beside.labels:
        lines.append(f"kerashub cannot store the names of the classes: {beside.labels}")
    if config.hidden_dropout_prob != config.attention_probs_dropout_prob:
        lines.append(
            f"kerashub has one dropout rate, also for attention: {config.hidden_dropout_prob}."
        )
    return lines
