"""From a model folder to a checked SavedModel, with one table of all export tasks."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.machine import fast_switch
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, atomic_folders, lock
from export import fresh_process
from export.comparison import Comparison, EvalSettings, Evaluation, differences
from export.model_folder import REGRESSION, LoadedModel, model_kind, open_model
from export.precision import FLOAT32, PRECISIONS, float32_bytes, store
from export.probes import Expected, Probe, probes_of
from export.saved_model import Exported, version_path, write_version
from export.signatures import (
    classifier,
    embedding,
    encoder,
    masked_lm,
    multiple_choice,
    preprocessor,
    question_answering,
    regression,
    replaced_tokens,
    tagging,
)
from export.signatures.common import tokens_alone

TEXT, TOKENS = INPUTS = ("text", "tokens")  # What requests to an export contain.
_MOST_FROZEN_BYTES = 1_900_000_000  # protobuf's limit is 2 GB, with room for the rest of the graph.
_ALL_KINDS = (*native.MODELS, REGRESSION)


@dataclasses.dataclass(frozen=True)
class ExportTask:
    """The export for one task.

    Attributes:
      module: model -> the module to save, whose `signatures()` returns functions by name.
      expected: model -> the answers that these functions must give.
      kinds: the kinds of models that can be exported as this task, see `model_kind`.
      is_scored: whether its signature `tokens` can be scored on labeled data.
    """

    module: Callable[[LoadedModel], Any]
    expected: Callable[[LoadedModel], Expected]
    kinds: tuple[str, ...]
    is_scored: bool = False

    def build(self, loaded: LoadedModel) -> tuple[Any, list[Probe]]:
        """The module, and a probe for each of its signatures."""
        module = self.module(loaded)
        return module, probes_of(module.signatures(), self.expected(loaded))


TASKS = {
    "classifier": ExportTask(
        classifier.make_module, classifier.expected, ("classification",), is_scored=True
    ),
    "regression": ExportTask(
        regression.RegressionModule, regression.expected, (REGRESSION,), is_scored=True
    ),
    "masked_lm": ExportTask(
        masked_lm.MaskedLMModule, masked_lm.expected, ("pretraining", "span_pretraining")
    ),
    "question_answering": ExportTask(
        question_answering.QuestionAnsweringModule,
        question_answering.expected,
        ("span", "span_v2"),
        is_scored=True,
    ),
    "multiple_choice": ExportTask(
        multiple_choice.MultipleChoiceModule,
        multiple_choice.expected,
        ("multiple_choice",),
        is_scored=True,
    ),
    "tagging": ExportTask(
        tagging.TaggingModule, tagging.expected, ("token_classification",), is_scored=True
    ),
    "embedding": ExportTask(embedding.EmbeddingModule, embedding.expected, _ALL_KINDS),
    "replaced_tokens": ExportTask(
        replaced_tokens.ReplacedTokensModule,
        replaced_tokens.expected,
        ("replaced_token_detection",),
    ),
    "encoder": ExportTask(encoder.EncoderModule, encoder.expected, _ALL_KINDS),
    "preprocessor": ExportTask(preprocessor.PreprocessorModule, preprocessor.expected, _ALL_KINDS),
}


@lock.locks("output_dir")
def export_model(
    model_dir: str,
    output_dir: str,
    task: str,
    version: int | None = None,
    max_seq_length: int | None = None,
    precision: str = FLOAT32,
    scored_on: EvalSettings | None = None,
    freeze: bool = False,
    inputs: str = TEXT,
    by_hand: Mapping[str, Any] | None = None,
) -> Exported:
    """Exports a model folder as `<output_dir>/<version>/`.

    Args:
      model_dir: a folder that `albert_tf.checkpoints.native.save` wrote.
      output_dir: the served model's folder, which can hold several versions.
      version: a positive integer; None takes the next one.
      max_seq_length: longest sequence, to which texts are truncated; None takes the one in
        model.json, or all positions of the model.
      scored_on: labeled data on which to score the float32 model and the export.
      freeze: whether the weights become constants of the graph: faster for requests of one size.
      inputs: one of INPUTS; TOKENS: requests contain only token ids, and no operation of TensorFlow
        Text is needed.
      by_hand: settings of the tokenizer, see `open_model`.

    Raises:
      UserError: the arguments do not fit the model or each other, or the export scores too low.
    """
    _check_choice("precision", precision, PRECISIONS)
    _check_choice("inputs", inputs, INPUTS)
    if precision != FLOAT32 and task == "preprocessor":
        raise UserError(
            f"--precision={precision} does not go with --task=preprocessor: it has no weights. "
            "Leave it out."
        )
    model_dir = atomic_folders.existing(model_dir)
    metadata = native.read_metadata(model_dir)
    check_task(task, model_kind(metadata), model_dir)
    if scored_on:
        check_scored(task)
    if freeze:
        _check_freezes(task, precision)
    if inputs == TOKENS and task == "preprocessor":
        raise UserError(
            f"--inputs={TOKENS}: a preprocessor takes only text, which it converts to token ids. "
            f"Use --inputs={TEXT}, or another --task."
        )
    version_path(output_dir, version)  # Raises its errors before the work, not after it.
    fresh_process.shared()  # Starts while the model is loaded.
    # Fast layers are compiled by XLA, which servers may not support.
    with tempfile.TemporaryDirectory() as folder, fast_switch.switched_off():
        loaded = open_model(model_dir, metadata, max_seq_length, folder, by_hand)
        evaluation = Evaluation(model_dir, loaded, scored_on) if scored_on else None
        size = float32_bytes(loaded.model)
        if freeze and size > _MOST_FROZEN_BYTES:
            raise UserError(
                f"--freeze: the weights of {model_dir} take {size / 1e9:.2f} GB, but a graph "
                f"with constants is limited to 2 GB, {_MOST_FROZEN_BYTES / 1e9:.1f} of weights. "
                "Leave --freeze out."
            )
        module, asked = TASKS[task].build(loaded)
        changes = {}
        if precision != FLOAT32:
            # `store` changes the model's variables and answers, so module and probes are built
            # again. The first probes have the answers of float32.
            exact = asked
            store(loaded.model, precision)
            module, asked = TASKS[task].build(loaded)
            changes = differences(exact, asked)
        if freeze:
            module.freeze()
        if inputs == TOKENS and task != "encoder":  # The encoder always takes tokens.
            module, asked = tokens_alone(module, asked)
        return write_version(
            module,
            output_dir,
            version,
            asked,
            provenance(task, loaded, model_dir),
            Comparison(precision, size, changes, frozen=freeze),
            evaluation,
        )


def _check_choice(flag: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise UserError(f"--{flag}={value} is not one of {', '.join(choices)}.")


def _check_freezes(task: str, precision: str) -> None:
    """Raises UserError unless exports of a task in a precision can have constant weights."""
    reasons = {"encoder": "the encoder stays trainable", "preprocessor": "it has no weights"}
    if task in reasons:
        raise UserError(f"--freeze does not go with --task={task}: {reasons[task]}. Leave it out.")
    if precision != FLOAT32:
        raise UserError(
            f"--freeze does not help, since in --precision={precision} each request expands the "
            f"matrices. Leave one of them out."
        )


def provenance(task: str, loaded: LoadedModel, model_dir: str) -> dict[str, Any]:
    """The origin of an export, for its manifest."""
    return {
        "task": task,
        "max_seq_length": loaded.max_seq_length,
        "labels": list(loaded.labels),
        "model_sha256": folder_sha256(model_dir),
        "vocabulary_sha256": loaded.vocabulary.fingerprint,
        "model": loaded.metadata,
        "config": loaded.model.config.to_dict(),
        "versions": _versions(),
    }


def check_task(
    task: str, kind: str, model_dir: str, offered: Collection[str] = tuple(TASKS)
) -> None:
    """Raises UserError, with the possible tasks, unless `task` is offered and a model of this kind
    (`model_kind`) can be exported as `task`. `model_dir` is for the message.
    """
    _check_choice("task", task, offered)
    if kind not in TASKS[task].kinds:
        fitting = [name for name in offered if kind in TASKS[name].kinds]
        raise UserError(
            f"--task={task} needs a model for {' or '.join(TASKS[task].kinds)}, and {model_dir} "
            f"holds one for {kind}. Use --task={'|'.join(fitting)}, or another --model_dir."
        )


def check_scored(task: str) -> None:
    """Raises UserError unless exports of a task can be scored on labeled data."""
    if not TASKS[task].is_scored:
        scored = " or ".join(name for name, each in TASKS.items() if each.is_scored)
        raise UserError(
            f"--eval_file is for tasks with right answers, which --task={task} does not have. "
            f"Leave it out, or use --task={scored}."
        )


def folder_sha256(directory: str) -> str:
    """Hexadecimal SHA-256 over names and contents of a folder's files, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(tf.io.gfile.listdir(directory)):
        path = os.path.join(directory, name)
        if not tf.io.gfile.isdir(path):
            digest.update(f"{name} {atomic_files.file_sha256(path)}\n".encode())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    installed = {}
    for name in ("tensorflow", "tensorflow-text", "sentencepiece"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed
