"""Fine-tuning with a teacher: its model, or the answers that it has stored."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.special

from albert_tf.distillation.objective import STORED
from albert_tf.distillation.teacher import Distillation, Learned, Shared, with_teacher
from albert_tf.errors import UserError
from albert_tf.finetuning.finetuned import check_meaning
from albert_tf.finetuning.runs.members import find_runs, find_splits, load_members
from albert_tf.finetuning.runs.run_files import outputs_path, read_outputs
from albert_tf.finetuning.runs.series import read_series
from albert_tf.finetuning.tasks.base import Predictions, Task, TaskData
from albert_tf.finetuning.tasks.pairs import PairTask
from albert_tf.finetuning.tasks.texts import ExampleTask, MultiLabelTask
from albert_tf.finetuning.training_examples import TrainingExamples
from albert_tf.keras_compat import keras
from albert_tf.pretrained.loading import locate
from albert_tf.training import run_folder
from data_pipeline.finetuning.text_files import (
    column_index,
    header_row,
    numbered_lines,
    parse_number,
)
from data_pipeline.tokenizers.base import Tokenizer

_LEAST = 1e-7  # The lower bound of probabilities: an average of votes may have 0.
_OUTPUTS = "/outputs"  # A run's folder of stored answers, next to its models.


def distilled(
    settings: Distillation | None,
    task: Task,
    student: keras.Model,
    training: TrainingExamples,
    tokenizer: Tokenizer,
) -> tuple[Learned, TrainingExamples]:
    """The objective of a run, and its examples, with a teacher's stored answers as a target."""
    objective, length = task.new_objective(student), training.features.max_seq_length
    shared = Shared(tokenizer.fingerprint, tokenizer.vocab_size, length, training.labels)
    teacher = settings.teacher if settings else None
    if teacher is not None and isinstance(task, PairTask):
        raise UserError(
            f"--teacher={teacher}: --task={task.name} trains vectors, which no distillation term "
            "can compare. Leave --teacher out."
        )
    if settings is None or teacher is None or not _is_stored(teacher):
        if settings and teacher and "logits" in settings.terms():
            check_meaning(teacher, task, locate(teacher).metadata())
        return with_teacher(objective, settings, shared), training
    if not isinstance(task, ExampleTask):
        raise UserError(
            f"--teacher={teacher}: runs of --task={task.name} store no answer for each token. Name "
            "the folder of the teacher's model."
        )
    read = _of_table if teacher.endswith(".tsv") else _of_runs
    logits = _logits(task, read(teacher, task, training))
    # Targets are selected by row, so that each answer stays with its example when shuffled.
    targets = {**training.features.targets, STORED: logits}
    features = dataclasses.replace(training.features, targets=targets)
    # Hash the answers, not their files, so that a run can resume after the files were moved.
    sha256 = run_folder.fingerprint({STORED: logits})
    return (
        with_teacher(objective, settings, shared, sha256),
        dataclasses.replace(training, features=features),
    )


def _is_stored(teacher: str) -> bool:
    """Whether a teacher is stored answers: a table, several runs, a series, or outputs."""
    if teacher.endswith(".tsv") or set(teacher) & set(",*?"):
        return True
    return teacher.rstrip("/").endswith(_OUTPUTS) or read_series(teacher) is not None


def _of_runs(teacher: str, task: Task, training: TrainingExamples) -> Predictions:
    """The answers of runs to the training examples, averaged like those of an ensemble."""
    patterns = [each.strip().rstrip("/").removesuffix(_OUTPUTS) for each in teacher.split(",")]
    runs, split = find_runs(patterns, "teacher"), task.train_split
    find_splits(task, TaskData(), runs, ("best",), [split])  # Its error tells how to store them.
    members, hashes = load_members(task, runs, ("best",), [split])
    _, origin = read_outputs(outputs_path(runs[0], split, "best"))
    if hashes[split] != training.sha256 or list(origin.labels) != list(training.labels):
        raise UserError(
            f"--teacher={teacher}: stored answers of {runs[0]} are for other examples or classes "
            f"than those of {training.name}. Predict these with it: --mode=predict --splits={split}"
        )
    return task.answer(training.features, [member.outputs[split] for member in members])


def _of_table(path: str, task: Task, training: TrainingExamples) -> Predictions:
    """The answers in a table with a row for each example, in their order: a probability for each
    class in columns p(class), as in `predictions/`, or a number in the column prediction.
    """
    lines, labels = numbered_lines(path), training.labels
    header = header_row(lines)
    names = [f"p({label})" for label in labels] or ["prediction"]
    columns = [column_index(path, header, name, "answer of the teacher") for name in names]
    rows = []
    for line, row in lines:
        fields = row.split("\t")
        if len(fields) != len(header):
            raise UserError(f"{path}:{line}: expected {len(header)} columns, found {len(fields)}.")
        rows.append([parse_number(fields[column], f"{path}:{line}") for column in columns])
        # Rounded probabilities do not add up to exactly 1.
        is_one = isinstance(task, MultiLabelTask) or not labels or abs(sum(rows[-1]) - 1) < 0.01
        if not is_one or (labels and not 0 <= min(rows[-1]) <= max(rows[-1]) <= 1):
            raise UserError(f"{path}:{line}: expected probabilities; received {rows[-1]}.")
    if len(rows) != len(training):
        raise UserError(
            f"--teacher={path} has {len(rows)} answers, and {training.name} has {len(training)} "
            "examples. Give an answer for each of them, in their order."
        )
    if not labels:
        return Predictions([value for (value,) in rows])
    return Predictions([], np.array(rows))


def _logits(task: Task, answers: Predictions) -> np.ndarray:
    """Logits float32 [N, C] whose softmax, or sigmoid, is the probabilities; or numbers [N, 1]."""
    if answers.probabilities is None:
        return np.array(answers.values, np.float32)[:, None]
    probabilities = np.clip(answers.probabilities, _LEAST, 1 - _LEAST)
    logs = scipy.special.logit if isinstance(task, MultiLabelTask) else np.log
    return logs(probabilities).astype(np.float32)
