"""The archive that gluebenchmark.com scores: eleven files of predictions on test sets in one zip.

Every file has the header `index<TAB>prediction` and a row for each test example, whose index is
its number in the order of the test file, from 0.

A sentence with the same runs' GLUE score on the dev sets is made here as well.
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
    """A file of the archive: the task whose `split` is predicted, and the size of the official test
    set.
    """

    task: str
    split: str
    num_examples: int

    def answers_in(self, folder: str) -> str | None:
        """Path of the answers in the folder of a run; None: it has none."""
        path = f"{answers_path(folder, self.task, self.split)}.tsv"
        return path if storage.exists(path) else None

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels that a row may have; None: a number from 0 to 5."""
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
# A fixed date, so that equal predictions give equal bytes.
_DATE = (2020, 1, 1, 0, 0, 0)


def submission_rows(name: str, predictions: Sequence[str | float]) -> list[str]:
    """The cells of a file's column `prediction`, of the test examples in order.

    Labels stay as they are. Numbers are clipped to 0 to 5, the scale of STS-B: 5.2 -> 5.000000.
    """
    labels, cells = FILES[name].labels, []
    for index, prediction in enumerate(predictions):
        if labels is None:
            try:
                value = float(prediction)
            except ValueError:
                raise UserError(
                    f"{name}: prediction {index} should be a number; received {prediction!r}."
                ) from None
            if not math.isfinite(value):
                raise UserError(
                    f"{name}: prediction {index} should be a number; received {value}. The model "
                    "has diverged; train it with a lower learning rate."
                )
            cells.append(f"{min(max(value, _MIN_SCORE), _MAX_SCORE):.6f}")
        elif str(prediction) in labels:
            cells.append(str(prediction))
        else:
            raise UserError(
                f"{name}: prediction {index} should be one of {', '.join(labels)}; received "
                f"{str(prediction)!r}. Write the task's own labels, not their numbers."
            )
    return cells


def dev_score_sentence(folders: Sequence[str]) -> str:
    """A sentence with the GLUE score of the best models on the dev sets (the mean over nine tasks),
    or with what is missing. A folder of --seeds or --search stands for its best run.
    """
    scored = {}
    for folder in map(best_run, folders):
        if storage.exists(os.path.join(folder, RESULTS_FILE)):
            answered = {file.task for file in FILES.values() if file.answers_in(folder)}
            for result in read_results(folder):
                if result.task in answered:
                    scored[result.task, result.split] = result.best.metrics
    splits = {task: _MATCHED if task == "mnli" else "dev" for task in SCORED_GLUE_TASKS}
    wanted = [*splits.items(), ("mnli", _MISMATCHED)]
    missing = [f"{task} ({split})" for task, split in wanted if (task, split) not in scored]
    if missing:
        return (
            f"No GLUE score of the dev sets: no run with answers has a {RESULTS_FILE} for "
            f"{', '.join(missing)}."
        )
    scores = {task: scored[task, split] for task, split in splits.items()}
    score = glue_score(scores, scored["mnli", _MISMATCHED])
    if score is None:
        return "No GLUE score of the dev sets: the score of a task is undefined."
    return f"GLUE score of the dev sets: {100 * score:.1f}"


def stored_predictions(folders: Sequence[str]) -> dict[str, list[str]]:
    """The answers to GLUE's test sets in folders of runs and of ensembles, by the names in FILES.

    Each task's answers must be in exactly one of the folders; AX's are in that of MNLI's run. A
    folder of --seeds or --search stands for its best run.
    """
    paths: dict[str, str] = {}
    # A series and its best run may both be named.
    for folder in dict.fromkeys(best_run(folder.rstrip("/")) for folder in folders):
        for name, file in FILES.items():
            path = file.answers_in(folder)
            if not path:
                continue
            if name in paths:
                raise UserError(
                    f"{name}: there are answers in {paths[name]} and in {path}. Name one run, or "
                    "one ensemble, of each task."
                )
            paths[name] = path
    missing = [name for name in FILES if name not in paths]
    if missing:
        file = FILES[missing[0]]
        raise UserError(
            f"no answers for {', '.join(missing)} in --runs. Predict them, for example: "
            f"run_finetuning --mode=predict --task={file.task} --splits={file.split} "
            f"--output_dir=<run of {'mnli' if file.task == 'ax' else file.task}>"
        )
    return {name: read_predictions(path) for name, path in paths.items()}


def write_submission(path: str, predictions: Mapping[str, Sequence[str | float]]) -> None:
    """Writes the archive, atomically. `predictions` has all eleven names in FILES, with label
    strings, or numbers for STS-B.
    """
    content = io.BytesIO()  # In memory, so that an error leaves no partial archive.
    with zipfile.ZipFile(content, "w") as archive:
        for name, file in FILES.items():
            cells = submission_rows(name, predictions[name])
            if len(cells) != file.num_examples:
                raise UserError(
                    f"{name} should have {file.num_examples} predictions, one for each example of "
                    f"the {file.split} set; received {len(cells)}. Predict the whole set."
                )
            rows = [_HEADER, *(f"{index}\t{cell}" for index, cell in enumerate(cells))]
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "".join(f"{row}\n" for row in rows))
    atomic_files.write_bytes(path, content.getvalue())
