"""The examples that a run is trained on, from a task's files or from records on disk."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import Task, TaskData
from albert_tf.training import run_folder
from data_pipeline.files import lock, storage
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.feature_records import read_features, write_features
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.tsv import numbers_note
from data_pipeline.records import record_folder
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings


@dataclasses.dataclass(frozen=True)
class TrainingExamples:
    """Training examples.

    Attributes:
      name: their file or folder, for messages.
      labels: names of the C classes in order.
      sha256: hash of the examples.
      content_sha256: hash of the rows.
    """

    name: str
    features: Features
    labels: tuple[str, ...]
    sha256: str
    content_sha256: str

    def __len__(self) -> int:
        return len(self.features)


def read_split(task: Task, data: TaskData, split: str) -> Split:
    """The examples of a split; prints which rows of its file were left out."""
    examples = task.read(data, split)
    if examples.note:
        print(examples.note)
    return examples


def data_hashes(task: Task, data: TaskData) -> dict[str, str]:
    """Split -> hash of the examples that a run would be trained and scored on, as in
    `Result.data_sha256`; examples in records are left out.
    """
    trained = [] if data.train_records else [task.train_split]
    return {split: task.read(data, split).sha256() for split in (*trained, *task.dev_splits)}


def check_trainable(task: Task) -> None:
    """Raises UserError for a task that can only be predicted."""
    if not task.train_split:
        raise UserError(
            f"--task={task.name} has no training examples. Predict it with a model of another "
            "task: --mode=predict."
        )


def make_examples(
    task: Task, split: Split, tokenizer: Tokenizer, lengths: LengthSettings
) -> TrainingExamples:
    """Examples that were read, as rows of a model's inputs."""
    labels = task.labels_in(split)
    if task.labels is None and (note := numbers_note(labels)):
        print(note)
    features = task.features(split, tokenizer, lengths, labels, True)
    content = run_folder.fingerprint(features.content)
    return TrainingExamples(split.source, features, labels, split.sha256(), content)


def made_with(task: Task, tokenizer: Tokenizer, lengths: LengthSettings) -> dict[str, Any]:
    """Everything that determines the rows of given examples, by name, for JSON."""
    settings = {
        "task": task.name,
        "vocabulary": tokenizer.fingerprint,
        **dataclasses.asdict(tokenizer.settings),
        **dataclasses.asdict(lengths),
        **task.data_settings,
    }
    # A task without its own labels takes those of the examples, which are compared by hash.
    return settings if task.labels is None else {**settings, "labels": list(task.labels)}


@lock.locks("output_dir")
def write_training_records(
    task: Task,
    data: TaskData,
    tokenizer: Tokenizer,
    lengths: LengthSettings,
    output_dir: str,
    overwrite: bool = False,
) -> tuple[dict[str, Any], bool]:
    """Writes the training examples to a folder of records, unless it exists.

    Returns the manifest, and whether the folder existed, made from the same examples with the same
    settings; UserError if it exists with other data.
    """
    check_trainable(task)
    split = read_split(task, data, task.train_split)
    settings = made_with(task, tokenizer, lengths)
    examples_sha256 = split.sha256()
    record_folder.complete_commit(output_dir)  # Left by a command that was killed.
    # Settings and examples are compared, not rows: if the folder is valid, nothing is encoded.
    if not overwrite and storage.exists(os.path.join(output_dir, record_folder.MANIFEST)):
        there = record_folder.verify_records(output_dir, kind=record_folder.FINETUNING)
        _check_same(
            f"--output_dir={output_dir}",
            {**_settings_of(there, tokenizer), "examples": there["examples_sha256"]},
            {**settings, "examples": examples_sha256},
            "Choose another folder, or replace it with --overwrite.",
        )
        return there, True
    record_folder.check_output_dir(output_dir, overwrite)
    made = make_examples(task, split, tokenizer, lengths)
    with record_folder.making(output_dir) as folder:
        manifest = {
            **write_features(made.features, folder, task.train_split),
            "task": task.name,
            "split": task.train_split,
            "source": os.path.basename(split.source),
            "num_examples": len(split),
            "labels": list(made.labels),
            "settings": settings,
            "examples_sha256": examples_sha256,
            "content_sha256": made.content_sha256,
        }
    return record_folder.commit(output_dir, manifest, {}, record_folder.FINETUNING), False


def read_training_records(
    folder: str, task: Task, tokenizer: Tokenizer, lengths: LengthSettings
) -> TrainingExamples:
    """The examples of a folder of records, which must have been made with this tokenizer and these
    lengths: the same rows as `make_examples` gives.
    """
    manifest = record_folder.verify_records(folder, kind=record_folder.FINETUNING)
    _check_same(
        f"--train_records={folder}",
        _settings_of(manifest, tokenizer),
        made_with(task, tokenizer, lengths),
        f"Use the same here, or make new records with {record_folder.FINETUNING.program}.",
    )
    return TrainingExamples(
        folder,
        read_features(manifest),
        tuple(manifest["labels"]),
        manifest["examples_sha256"],
        manifest["content_sha256"],
    )


def _settings_of(manifest: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    """The settings of records, with defaults for tokenizer settings of later versions."""
    settings = manifest["settings"]
    tokenizer_settings = TokenizerSettings(settings["lower"], settings["rules"])
    return {**dataclasses.asdict(tokenizer.resolve(tokenizer_settings)), **settings}


def _check_same(place: str, stored: dict[str, Any], expected: dict[str, Any], remedy: str) -> None:
    """Raises UserError that names the first setting in which records differ from this command."""
    for name in dict.fromkeys((*expected, *stored)):
        if stored.get(name) != expected.get(name):
            # Shortened, as hashes and lists of labels would fill the message.
            values = (f"{settings.get(name)!r:.24}" for settings in (stored, expected))
            raise UserError(
                "{} was made with {} {}, and this command has {}. {}".format(
                    place, name, *values, remedy
                )
            )
