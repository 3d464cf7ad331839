"""Ensembles of fine-tuned models, from the outputs that their runs have stored; no model is run.

The paper (section 4.9) averages "the model predictions" of members chosen by their dev scores.
Files in the folder of an ensemble:

    ensemble.json, ensemble.md          members and scores
    curve.csv, curve.png                the score of 1, 2, ... members
    predictions/<task>_<split>.*        answers, as a run writes them

ensemble.json (version 1) has the fields of `Report`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.ensemble_choice import choose_members, compared_split
from albert_tf.finetuning.runs.ensemble_report import (
    Report,
    SplitScore,
    member_scores,
    write_curve,
    write_report,
)
from albert_tf.finetuning.runs.members import (
    CHECKPOINTS,
    find_runs,
    find_splits,
    load_members,
    read_answered,
)
from albert_tf.finetuning.runs.run_files import predictions_path
from albert_tf.finetuning.tasks.base import Predictions, Task, TaskData
from albert_tf.training.run_folder import RUN_FILE
from data_pipeline.files import storage
from data_pipeline.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class EnsembleSettings(Settings):
    """The settings of an ensemble."""

    checkpoints: tuple[str, ...] = setting(
        ("best",), "Models of each run to average: best, last, or both.", one_of=CHECKPOINTS
    )
    average: str | None = setting(
        None,
        "Outputs to average for classes and tags: probabilities (the default), logits or votes; "
        "other tasks have their own, such as values for regressions.",
    )
    choose: str = setting(
        "all",
        "Choice of members. all: every model. greedy: models are added one by one, each time the "
        "one that raises the dev score most; that score is then too optimistic, because the "
        "members were chosen on the same examples.",
        one_of=("all", "greedy"),
    )
    splits: tuple[str, ...] = ()  # Splits to answer; (): all with outputs of every member.


def run_ensemble(
    runs: Sequence[str],
    task: Task,
    data: TaskData,
    output_dir: str,
    settings: EnsembleSettings | None = None,
) -> dict[str, Predictions]:
    """Joint answers of several models, scored and written into `output_dir`; split -> answers.

    `runs` are folders of runs or of series, or patterns that match them.
    """
    settings = settings or EnsembleSettings()
    if storage.exists(os.path.join(output_dir, RUN_FILE)):
        raise UserError(
            f"--output_dir={output_dir} holds a run, whose answers would be replaced. Name another "
            "folder."
        )
    task = task.averaging(settings.average)  # Refuses an unknown average before any reading.
    folders = find_runs(runs)
    splits = find_splits(task, data, folders, settings.checkpoints, settings.splits)
    members, hashes = load_members(task, folders, settings.checkpoints, splits)
    model, answered = read_answered(task, data, folders, hashes)
    task = task.as_in(model.metadata)
    if compared := compared_split(task, answered):
        task = task.scored_on(answered[compared].features)
    chosen = choose_members(task, members, answered, settings.choose)

    def answer(task: Task, split: str) -> Predictions:
        outputs = [members[number].outputs[split] for number in chosen.order]
        return task.answer(answered[split].features, outputs)

    # SQuAD's threshold is chosen on a split with known answers, and then used on every split. The
    # members' own thresholds do not suit the ensemble, whose odds are means.
    if not task.is_settled:
        if not chosen.split:
            raise UserError(
                f"--task={task.name}: no split has known answers, on which to choose the threshold "
                "of null odds. Add dev to --splits, or give --null_score_diff_threshold."
            )
        scores = task.score(answered[chosen.split].features, answer(task, chosen.split))
        task = task.settled(scores)
    answers = {split: answer(task, split) for split in answered}
    storage.make_folder(output_dir)  # Nothing is written before every split is answered.
    for split, predictions in answers.items():
        path = predictions_path(output_dir, task.name, split)
        for written in task.write(path, answered[split].features, model.labels, predictions):
            print(f"{len(answered[split].examples)} predictions: {written}")
    if chosen.split:
        write_curve(output_dir, members, chosen, task)
    results = []
    for split, rows in answered.items():
        if rows.is_scored:
            scores = task.score(rows.features, answers[split])
            notes = task.remarks(rows.features, answers[split], model.labels)
            results.append(SplitScore(split, len(rows.examples), hashes[split], scores, notes))
    average = settings.average or next(iter(task.averages), "the task's own")
    report = Report(
        *(task.name, task.key, average, settings.choose, chosen.split),
        members=member_scores(members, chosen),
        results=results,
    )
    write_report(output_dir, report)
    return answers
