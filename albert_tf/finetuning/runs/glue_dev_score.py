"""The GLUE score on the dev sets, of the runs whose answers are submitted."""

from __future__ import annotations

import os
from collections.abc import Sequence

import tensorflow as tf

from albert_tf.finetuning.runs.glue_submission import answered_tasks
from albert_tf.finetuning.runs.results import RESULTS_FILE, read_results
from albert_tf.finetuning.runs.series import best_run
from albert_tf.metrics.scorers import SCORED_GLUE_TASKS, glue_score

_MATCHED, _MISMATCHED = "dev_matched", "dev_mismatched"


def dev_score_sentence(folders: Sequence[str]) -> str:
    """A sentence with the mean over GLUE's nine tasks of the best models' scores on the dev sets,
    or with what it lacks. Of a folder of --seeds or --search its best run counts.
    """
    found = {}
    for folder in map(best_run, folders):
        if tf.io.gfile.exists(os.path.join(folder, RESULTS_FILE)):
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
