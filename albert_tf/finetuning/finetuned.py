"""Use of a fine-tuned model: scores on labeled examples, predictions on others."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from albert_tf.checkpoints import formats, native
from albert_tf.errors import UserError
from albert_tf.finetuning.evaluation import Predictor, ScoreEvaluator, rows_of_step
from albert_tf.finetuning.runs.run_files import (
    LAST_MODEL,
    Origin,
    best_folder,
    outputs_path,
    predictions_path,
    weights_sha256,
    write_outputs,
)
from albert_tf.finetuning.tasks.base import Predictions, Task, TaskData
from albert_tf.finetuning.tasks.pairs import PairTask
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.finetuning.tasks.texts import MultiLabelTask
from albert_tf.finetuning.training_examples import read_split
from albert_tf.keras_compat import keras
from albert_tf.metrics import Scores
from albert_tf.training.devices import Devices
from albert_tf.training.strategy import is_chief
from data_pipeline.files import atomic_files, storage
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer


class FineTuned(NamedTuple):
    """A fine-tuned model with what its inputs and outputs mean.

    Attributes:
      task: with the model's own settings of answers, such as a threshold.
      model: on the given devices; None if none were given.
      lengths: the lengths at which texts are cut, as in training.
      labels: names of the classes in order.
      metadata: the content of model.json.
      folder: the model's.
    """

    task: Task
    model: keras.Model
    tokenizer: Tokenizer
    lengths: LengthSettings
    labels: tuple[str, ...]
    metadata: dict[str, Any]
    folder: str

    def features(self, split: Split, has_targets: bool) -> Features:
        """Examples as inputs of the model; see `Task.features`."""
        return self.task.features(split, self.tokenizer, self.lengths, self.labels, has_targets)


def load_finetuned(
    folder: str, task: Task, devices: Devices | None, tokenizer: Tokenizer | None = None
) -> FineTuned:
    """The fine-tuned model in a folder, for its own task or another with the same classes, such as
    AX with a model of MNLI.

    A benchmark refuses models of other benchmarks, even if their classes have the same names.

    Args:
      devices: where the model runs; None: load only what its inputs and outputs mean.
      tokenizer: the model's; None: made from its folder.
    """
    metadata = native.read_metadata(folder)
    expected = next(name for name, kind in native.MODELS.items() if kind is task.model_class)
    labels = metadata.get("labels")
    # Model folders of earlier versions do not store their task.
    trained_on = metadata.get("finetuned_on", metadata["task"])
    if metadata["task"] != expected or labels is None:
        raise UserError(
            f"{folder} holds a model for {trained_on}, and --task={task.name} needs a fine-tuned "
            f"one for {expected}. Name the model's own task, or fine-tune it first."
        )
    if task.labels is not None and tuple(labels) != task.labels:
        raise UserError(
            f"{folder} holds a model for {trained_on} with the classes {', '.join(labels)}, and "
            f"--task={task.name} has {', '.join(task.labels) or 'numbers'}. Name the model's own "
            "task."
        )
    check_meaning(folder, task, metadata)
    _check_labels(folder, task, metadata.get("multi_label", False))
    task = task.as_in(metadata)
    # SQuAD 2.0's threshold is stored among the scores of the model.
    task = task.settled(metadata.get("metrics", {}))
    model = None
    if devices is not None:
        with devices.strategy.scope():
            model = native.load_model(folder, devices.packed)
    usual = dataclasses.asdict(LengthSettings())  # Earlier versions wrote fewer lengths.
    lengths = LengthSettings(**{name: metadata.get(name, usual[name]) for name in usual})
    tokenizer = tokenizer or load_tokenizer(native.vocabulary_file(folder))
    return FineTuned(task, model, tokenizer, lengths, tuple(labels), metadata, folder)


def check_meaning(folder: str, task: Task, metadata: Mapping[str, Any]) -> None:
    """Raises UserError if a model's answers mean something else than a task's, which the names of
    the classes may not show.
    """
    trained_on = metadata.get("finetuned_on", "")
    trained = TASKS.get(trained_on)
    # Classes of two benchmarks may have the same names, as in RTE and QNLI. AX, which has no
    # training examples, is predicted by models of MNLI; the user's own files, by all models with
    # the same classes.
    are_benchmarks = trained and trained.file_reader is None and task.file_reader is None
    if are_benchmarks and trained_on != task.name and task.train_split:
        raise UserError(
            f"{folder} holds a model for {trained_on}, whose answers do not mean the same as those "
            f"of --task={task.name}. Name the model's own task; for your own texts, use --task=tsv."
        )
    _check_pairs(folder, task, metadata.get("data_settings", {}))


def _check_pairs(folder: str, task: Task, trained_with: Mapping[str, Any]) -> None:
    """Raises UserError if a model of pairs is used for single texts, or the reverse."""
    name = "pair_column"
    # Benchmarks have no columns, and folders of earlier versions do not store theirs. PairTask
    # predicts pairs, even if it was trained on single texts.
    is_known = name in trained_with and name in task.data_settings
    if not is_known or isinstance(task, PairTask):
        return
    trained, given = trained_with[name], task.data_settings[name]
    if (trained is None) != (given is None):
        raise UserError(
            f"{folder} was fine-tuned "
            + (f"with --{name}={trained}, on pairs" if trained else "on single texts")
            + f", and --{name} is {given or 'missing'}. Use the same kind of texts."
        )


def _check_labels(folder: str, task: Task, trained: bool) -> None:
    """Raises UserError if a multi-label model is used for a task of one label, or the reverse."""
    if trained != isinstance(task, MultiLabelTask):
        number = "any number of labels" if trained else "one label"
        remedy = "Give --task=tsv --multi_label" if trained else "Leave --multi_label out"
        raise UserError(f"{folder} holds a model that gives a text {number}. {remedy}.")


def evaluate(
    finetuned: FineTuned, data: TaskData, splits: Sequence[str], batch_size: int, output_dir: str
) -> dict[str, Scores]:
    """Scores a model on labeled splits, prints the scores, and writes them to scores.json.

    Returns split -> scores by name; where data are missing or wrong, nothing is written.
    """
    task, model = finetuned.task, finetuned.model
    if not splits:
        raise UserError(
            f"--task={task.name} has no labeled examples to score a model on. Predict with it: "
            "--mode=predict."
        )
    scores = {}
    for split, examples in _read_all(task, data, splits).items():
        features = finetuned.features(examples, has_targets=True)
        task = task.scored_on(features)
        evaluator = ScoreEvaluator(task, model, {split: features}, batch_size)
        evaluator()
        scores[split] = evaluator.scores[split]
        figures = "  ".join(
            f"{name} {'undefined' if value is None else format(value, '.4f')}"
            for name, value in scores[split].items()
        )
        print(f"{task.name}, {split}, {len(examples)} examples: {figures}")
        for note in task.remarks(features, evaluator.predictions[split], finetuned.labels):
            print(note)
    if is_chief(model.distribute_strategy):
        storage.make_folder(output_dir)
        path = os.path.join(output_dir, "scores.json")
        atomic_files.write_json(path, {"task": task.name, "scores": scores})
        print(f"Scores: {path}")
    return scores


def predict(
    finetuned: FineTuned, data: TaskData, splits: Sequence[str], batch_size: int, output_dir: str
) -> dict[str, Predictions]:
    """Answers to the examples of splits, written into the folder `predictions` of a run.

    The outputs that an ensemble needs are written into the folder `outputs`. Labels are shown next
    to the answers if a benchmark's files have them. If data are missing or wrong, nothing is
    written.
    """
    task, model = finetuned.task, finetuned.model
    answers = {}
    is_last = os.path.basename(finetuned.folder.rstrip("/")) == LAST_MODEL
    checkpoint = "last" if is_last else "best"
    # By this hash an ensemble identifies the model that has answered.
    weights = weights_sha256(formats.recognize(finetuned.folder))
    # The last model's answers must not replace those of the best one.
    best, own = map(os.path.realpath, (best_folder(output_dir), finetuned.folder))
    has_better = is_last and best != own
    for split, examples in _read_all(task, data, splits).items():
        features = finetuned.features(examples, has_targets=False)
        # An ensemble may later be scored on the stored outputs of a dev split.
        scored = task.scored_on(features) if split in task.dev_splits else task
        outputs = Predictor(model, features, rows_of_step(model, features, batch_size))()
        stored = scored.keep(features, outputs)
        answers[split] = scored.answer(features, [stored])
        if is_chief(model.distribute_strategy):
            name = f"{split}.last" if has_better else split
            path = predictions_path(output_dir, task.name, name)
            origin = Origin(task.name, finetuned.labels, examples.sha256(), weights)
            write_outputs(outputs_path(output_dir, split, checkpoint), stored, origin)
            for written in task.write(path, features, finetuned.labels, answers[split]):
                print(f"{len(examples)} predictions: {written}")
    return answers


def _read_all(task: Task, data: TaskData, splits: Sequence[str]) -> dict[str, Split]:
    """The examples of the splits, all read before the first is answered."""
    return {split: read_split(task, data, split) for split in splits}
