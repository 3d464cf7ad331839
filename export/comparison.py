"""Comparison of an export with its float32 model: answers to probes, score on labeled data."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.evaluation import Predictor
from albert_tf.finetuning.finetuned import FineTuned, load_finetuned
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS, trained_task
from data_pipeline.errors import UserError
from data_pipeline.finetuning.encoded import SPECIAL_PIECES_OF_PAIR
from export.model_folder import LoadedModel
from export.probes import Probe

_BATCH_SIZE = 32

# Inputs of a model by name -> its outputs by name.
Answer = Callable[..., Mapping[str, tf.Tensor]]


@dataclasses.dataclass(frozen=True)
class EvalSettings:
    """The examples on which an export is scored, and the largest allowed loss.

    Attributes:
      file: the user's file of labeled examples, or the folder of a benchmark.
      max_accuracy_loss: how much lower than float32 an export may score; None: no limit.
    """

    file: str
    max_accuracy_loss: float | None = None


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """The score of an export.

    Attributes:
      metric: name of the task's score, "accuracy" for most.
      examples: number of examples.
      file: where they came from.
      float32: the score of the Keras model; None: undefined, such as the correlation of answers
        that are all equal.
      exported: the score of the export, or None.
    """

    metric: str
    examples: int
    file: str
    float32: float | None
    exported: float | None


def shown(score: float | None) -> str:
    """A score as readable text: 0.8498, or "undefined"."""
    return "undefined" if score is None else f"{score:.4f}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The comparison of an export with its float32 model.

    Attributes:
      precision: one of `PRECISIONS`.
      float32_bytes: size of the weights in float32.
      differences: largest absolute difference from float32 of each numeric output, over all
        probes, by "signature.output"; empty for an export in float32.
      accuracy: the scores of both on labeled data; None: not measured.
      frozen: whether the weights are constants of the graph instead of variables.
    """

    precision: str
    float32_bytes: int
    differences: dict[str, float]
    accuracy: Accuracy | None = None
    frozen: bool = False


def differences(exact: Sequence[Probe], stored: Sequence[Probe]) -> dict[str, float]:
    """The largest absolute difference of each numeric output, by "signature.output", between probes
    with the answers of float32 and the same probes with the answers of the export.
    """
    return {
        f"{before.signature}.{name}": difference
        for before, after in zip(exact, stored, strict=True)
        for name, difference in largest_by_output(before, after.expected).items()
    }


def largest_by_output(probe: Probe, answer: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The largest absolute difference of each numeric output from the expected value."""
    # Either may lack outputs: `question_answering.decided_beams` drops those that rounding decides.
    return {
        name: float(np.abs(expected - answer[name]).max(initial=0.0))
        for name, expected in probe.expected.items()
        if np.issubdtype(expected.dtype, np.floating) and name in answer
    }


class Evaluation:
    """Labeled examples of the task that a model was fine-tuned for, and the model's score on them
    in float32.

    `loaded` is the content of `model_dir`, before its matrices are stored in fewer bits. Raises
    UserError if the model was not fine-tuned, or the examples are missing or wrong.
    """

    def __init__(self, model_dir: str, loaded: LoadedModel, settings: EvalSettings) -> None:
        self._settings = settings
        found = _load(model_dir, loaded)
        length, answers = loaded.max_seq_length, found.lengths.max_qa_length
        if answers is not None:  # A shorter export also truncates answers, to fit a context.
            answers = min(answers, length - SPECIAL_PIECES_OF_PAIR - 1)
        lengths = dataclasses.replace(found.lengths, max_seq_length=length, max_qa_length=answers)
        self._found = found._replace(lengths=lengths)
        split, data = _source(found, settings.file)
        examples = found.task.read(data, split)
        self._num_examples = len(examples)
        self._features = self._found.features(examples, True)
        self._float32 = self.score(loaded.model)

    def score(self, model: Any) -> float | None:
        """The score of a Keras model, or of an object with its interface; None if undefined."""
        task, features = self._found.task, self._features
        stored = task.keep(features, Predictor(model, features, _BATCH_SIZE)())
        score = task.score(features, task.answer(features, [stored])).get(task.key)
        return None if score is None else float(score)

    def accept(self, answer: Answer, input_names: Sequence[str], precision: str) -> Accuracy:
        """The score of an export, whose signature `tokens` takes `input_names`. Raises UserError if
        it is lower than in float32 by more than is allowed.
        """
        task = self._found.task
        file, allowed = self._settings.file, self._settings.max_accuracy_loss
        exact, exported = self._float32, self.score(_LikeModel(answer, input_names))
        accuracy = Accuracy(task.key, self._num_examples, file, exact, exported)
        if allowed is None:
            return accuracy
        if exact is None or exported is None:
            raise UserError(
                f"{task.key} on {file} is {shown(exact)} in float32 and {shown(exported)} in the "
                f"export, so --max_accuracy_loss={allowed} cannot be checked. Nothing was "
                "written. Use other examples, or leave it out."
            )
        scale = 100 if task.scores_are_percent else 1
        if not exact - exported <= allowed * scale:  # Not `>`: a score can be NaN.
            raise UserError(
                f"--precision={precision}: {task.key} on {file} is {shown(exported)} instead of "
                f"{shown(exact)}, a loss above --max_accuracy_loss={allowed}. Nothing was "
                "written. Use a higher precision, or allow the loss."
            )
        return accuracy


class _LikeModel:
    """Adapts a signature `tokens` to the inputs and outputs of the Keras model."""

    def __init__(self, answer: Answer, input_names: Sequence[str]) -> None:
        self.distribute_strategy = tf.distribute.get_strategy()  # `Predictor` reads it.
        self._answer = answer
        self._names = input_names

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool) -> dict[str, tf.Tensor]:
        del training  # A served graph has no dropout.
        outputs = self._answer(**{name: inputs[name] for name in self._names})
        if "value" in outputs:  # A regression.
            return {"logits": outputs["value"][:, None]}
        return {"logits": outputs["logits"]} if "logits" in outputs else dict(outputs)


def _load(model_dir: str, loaded: LoadedModel) -> FineTuned:
    """The fine-tuned model, with its task and settings."""
    metadata = loaded.metadata
    if metadata.get("finetuned_on") is None:
        raise UserError(
            f"--eval_file needs a fine-tuned model, and {model_dir} does not name its task. "
            "Leave it out, or fine-tune the model first."
        )
    if metadata["finetuned_on"] not in TASKS:
        raise UserError(
            f"--eval_file: {model_dir} was fine-tuned on {metadata['finetuned_on']!r}, a task of "
            "your own, whose files cannot be read here. Leave it out."
        )
    return load_finetuned(model_dir, trained_task(metadata), None, loaded.vocabulary)


def _source(found: FineTuned, file: str) -> tuple[str, TaskData]:
    """The name of the split to evaluate on, and its location."""
    split = found.task.dev_splits[0]
    if not tf.io.gfile.exists(file):
        raise UserError(f"--eval_file={file} does not exist. Pass a file with labels.")
    if found.task.file_reader and not tf.io.gfile.isdir(file):
        return split, TaskData(files={split: file})
    if found.task.reader and tf.io.gfile.isdir(file):
        return split, TaskData(data_dir=file)
    expected = "the folder of its data" if found.task.reader else "a file"
    raise UserError(
        f"--eval_file={os.fspath(file)}: the model was fine-tuned on {found.task.name}, whose "
        f"examples are read from {expected}. Pass that."
    )
