"""The archive that gluebenchmark.com scores: eleven files of predictions on test sets in one zip.

Every file has the header `index<TAB>prediction` and a row for each test example, whose index is
its number in the order of the test file, from 0.

With it goes a sentence about the same runs' GLUE score on the dev sets.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.results import RESULTS_FILE, read_results
from albert_tf.finetuning.runs.run_files import answers_path
from albert_tf.finetuning.runs.series import best_run
from albert_tf.finetuning.tasks.answer_tables import read_predictions
from albert_tf.metrics.scorers import SCORED_GLUE_TASKS, glue_score
from data_pipeline.files import atomic_files, storage
from data_pipeline.finetuning.glue import GLUE_TASKS


class SubmissionFile(NamedTuple):
    """A file of the archive.

    Attributes:
      task: name of the task here.
      split: the data that is predicted.
      num_examples: of the official test set.
    """

    task: str
    split: str
    num_examples: int

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Those that a row may have; None: a number from 0 to 5."""
        return GLUE_TASKS[self.task].labels


FILES: dict[str, SubmissionFile] = {
    "CoLA.tsv": SubmissionFile("cola", "test", 1063),
    "SST-2.tsv": SubmissionFile("sst-2", "test", 1821),
    "MRPC.tsv": SubmissionFile("mrpc", "test", 1725),
    "STS-B.tsv": SubmissionFile("sts-b", "test", 1379),
    "MNLI-m.tsv": SubmissionFile("mnli", "test_matched", 9796),
    "MNLI-mm.tsv": SubmissionFile("mnli", "test_mismatched", 9847),
    "QNLI.tsv": SubmissionFile("qnli", "test", 5463),
    "QQP.tsv": SubmissionFile("qqp", "test", 390965),
    "RTE.tsv": SubmissionFile("rte", "test", 3000),
    "WNLI.tsv": SubmissionFile("wnli", "test", 146),
    # The diagnostic set, predicted with the model of MNLI.
    "AX.tsv": SubmissionFile("ax", "test", 1104),
}
_HEADER = "index\tprediction"
_MATCHED, _MISMATCHED = "dev_matched", "dev_mismatched"
_MIN_SCORE, _MAX_SCORE = 0.0, 5.0
# One date for all archives: equal predictions give equal bytes.
_DATE = (2020, 1, 1, 0, 0, 0)
# Sizes of the official test sets, by file.
OFFICIAL_COUNTS = {name: file.num_examples for name, file in FILES.items()}


def submission_rows(name: str, predictions: Sequence[str | float]) -> list[str]:
    """The cells of a file's column `prediction`.

    Labels stay as they are. Numbers are cut to 0 to 5, the scale of STS-B: 5.2 -> 5.000000.

    Args:
      name: of the file, such as STS-B.tsv.
      predictions: of the test examples in order.

    Raises:
      UserError: a prediction is neither a label of the task nor a finite number.
    """
    labels, cells = FILES[name].labels, []
    for index, prediction in enumerate(predictions):
        if labels is None:
            value = float(prediction)
            if not math.isfinite(value):
                raise UserError(
                    f"{name}: prediction {index} should be a number; received {value}. The model "
                    "has diverged; train it with a lower learning rate."
                )
            cells.append(f"{min(max(value, _MIN_SCORE), _MAX_SCORE):.6f}")
        else:
            cells.append(_checked_label(f"{name}: prediction {index}", str(prediction), labels))
    return cells


def _checked_label(where: str, label: str, labels: Sequence[str]) -> str:
    if label not in labels:
        raise UserError(
            f"{where} should be one of {', '.join(labels)}; received {label!r}. Write the task's "
            "own labels, not their numbers."
        )
    return label


def answered_tasks(folder: str) -> set[str]:
    """The tasks to whose test sets there are answers in the folder of a run."""
    paths = {file: f"{answers_path(folder, file.task, file.split)}.tsv" for file in FILES.values()}
    return {file.task for file, path in paths.items() if storage.exists(path)}


def dev_score_sentence(folders: Sequence[str]) -> str:
    """A sentence with the mean over GLUE's nine tasks of the best models' scores on the dev sets,
    or with what it lacks. Of a folder of --seeds or --search its best run counts.
    """
    found = {}
    for folder in map(best_run, folders):
        if storage.exists(os.path.join(folder, RESULTS_FILE)):
            answered = answered_tasks(folder)
            for result in read_results(folder):
                if result.task in answered:
                    found[result.task, result.split] = result.best.metrics
    splits = {task: _MATCHED if task == "mnli" else "dev" for task in SCORED_GLUE_TASKS}
    wanted = [*splits.items(), ("mnli", _MISMATCHED)]
    missing = [f"{task} ({split})" for task, split in wanted if (task, split) not in found]
    if missing:
        return (
            f"No GLUE score of the dev sets: no run with answers has a {RESULTS_FILE} of "
            f"{', '.join(missing)}."
        )
    scores = {task: found[task, split] for task, split in splits.items()}
    score = glue_score(scores, found["mnli", _MISMATCHED])
    if score is None:
        return "No GLUE score of the dev sets: that of a task is undefined."
    return f"GLUE score of the dev sets: {100 * score:.1f}"


def stored_predictions(folders: Sequence[str]) -> dict[str, list[str]]:
    """The answers to GLUE's test sets that lie in folders of runs and of ensembles.

    Args:
      folders: each task's answers are in one of them, AX's in the folder of MNLI's run. A folder
        of --seeds or --search stands for its best run.

    Returns:
      Name of a file in FILES -> predictions in the order of the test file, for `write_submission`.

    Raises:
      UserError: answers are missing, or lie in two folders.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(best_run(folder.rstrip("/")) for folder in folders):
        for name, file in FILES.items():
            path = f"{answers_path(folder, file.task, file.split)}.tsv"
            if not storage.exists(path):
                continue
            if name in found:
                raise UserError(
                    f"{name}: there are answers in {found[name]} and in {path}. Name one run, or "
                    "one ensemble, of each task."
                )
            found[name] = path
    missing = [name for name in FILES if name not in found]
    if missing:
        file = FILES[missing[0]]
        raise UserError(
            f"no answers for {', '.join(missing)} lie in --runs. Predict them, such as: "
            f"run_finetuning --mode=predict --task={file.task} --splits={file.split} "
            f"--output_dir=<run of {'mnli' if file.task == 'ax' else file.task}>"
        )
    return {name: read_predictions(path) for name, path in found.items()}


def write_submission(
    path: str,
    predictions: Mapping[str, Sequence[str | float]],
    counts: Mapping[str, int] = OFFICIAL_COUNTS,
) -> None:
    """Writes the archive, atomically, once its content has passed `check_submission`.

    Args:
      path: of the zip.
      predictions: by the names of FILES, all eleven: label strings, numbers for STS-B.
      counts: rows of each file; other than the official ones only where parts are tried.

    Raises:
      UserError: a file is missing or unknown, or has impossible or too few predictions.
    """
    _check_names(path, predictions)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in FILES:
            cells = submission_rows(name, predictions[name])
            rows = [_HEADER, *(f"{index}\t{cell}" for index, cell in enumerate(cells))]
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "".join(f"{row}\n" for row in rows))
    _check_archive(path, content.getvalue(), counts)
    atomic_files.write_bytes(path, content.getvalue())


def check_submission(path: str, counts: Mapping[str, int] = OFFICIAL_COUNTS) -> None:
    """Checks that an archive has the format that gluebenchmark.com takes.

    Args:
      path: of the zip.
      counts: rows of each file.

    Raises:
      UserError: naming the file of the archive and the line that is wrong.
    """
    _check_archive(path, storage.read_bytes(path), counts)


def _check_archive(path: str, content: bytes, counts: Mapping[str, int]) -> None:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile:
        raise UserError(f"{path} should be a zip archive and is none. Write it again.") from None
    with archive:
        names = archive.namelist()
        _check_names(path, names)
        if len(names) > len(FILES):
            raise UserError(f"{path} should have every file once. Write it again.")
        for name in FILES:
            try:
                text = archive.read(name).decode("utf-8")
            except (zipfile.BadZipFile, UnicodeDecodeError) as error:
                raise UserError(
                    f"{path}: {name} cannot be read: {error}. Write it again."
                ) from None
            _check_file(f"{path}/{name}", name, text, counts[name])


def _check_names(path: str, names: Mapping | Sequence[str]) -> None:
    missing = [name for name in FILES if name not in names]
    unknown = [name for name in names if name not in FILES]
    if missing or unknown:
        raise UserError(
            f"{path} should have the files {', '.join(FILES)} and no folders; missing: "
            f"{', '.join(missing) or 'none'}, unknown: {', '.join(unknown) or 'none'}. Predict the "
            "test set of every task."
        )


def _check_file(where: str, name: str, text: str, count: int) -> None:
    lines = text.removesuffix("\n").split("\n")
    if lines[0] != _HEADER:
        raise UserError(
            f"{where}:1: expected the header index<TAB>prediction; received {lines[0]!r}."
        )
    if len(lines) - 1 != count:
        raise UserError(
            f"{where} should have {count} predictions, one for each example of the "
            f"{FILES[name].split} set; received {len(lines) - 1}. Predict the whole set."
        )
    for line, row in enumerate(lines[1:], 2):
        index, tab, cell = row.partition("\t")
        if not tab or index != str(line - 2):
            raise UserError(
                f"{where}:{line}: expected {line - 2}<TAB>prediction, as examples are numbered in "
                f"order from 0; received {row!r}."
            )
        labels = FILES[name].labels
        if labels is not None:
            _checked_label(f"{where}:{line}: the prediction", cell, labels)
        elif not _is_similarity(cell):
            raise UserError(f"{where}:{line}: expected a number from 0 to 5; received {cell!r}.")


def _is_similarity(cell: str) -> bool:
    try:
        return _MIN_SCORE <= float(cell) <= _MAX_SCORE  # False for nan.
    except ValueError:
        return False
