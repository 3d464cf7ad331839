"""The end of a fine-tuning run: scores of both checkpoints, files of answers and scores, and the
commands that come next.
"""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf.checkpoints import formats, native
from albert_tf.finetuning.evaluation import ScoreEvaluator
from albert_tf.finetuning.runs.results import (
    TABLE_FILE,
    Result,
    Scored,
    results_table,
    write_results,
)
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
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.keras_compat import keras
from albert_tf.training.strategy import is_chief, wait_for_all
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split


def conclude(
    task: Task,
    model: keras.Model,
    evaluator: ScoreEvaluator,
    labels: Sequence[str],
    splits: Mapping[str, Split],
    output_dir: str,
    trained_on: Mapping[str, str],
    origin: Mapping[str, Any],
) -> list[Result]:
    """Scores the best model, and writes the results; returns the scores of each dev split.

    Args:
      model: the model after the last step; the best model's weights are loaded into it.
      evaluator: of `model` on the dev splits, which it has just evaluated.
      splits: examples of the dev splits, by name.
      trained_on: the split that was trained on, and the hash of its examples.
      origin: `seed`, `preset` and `init_sha256` of each Result.
    """
    writes = is_chief(model.distribute_strategy)  # All workers compute the same scores.
    last = os.path.join(output_dir, LAST_MODEL)
    # Copies: the evaluation of the best model below replaces what the evaluator holds.
    last_scores, last_predictions = dict(evaluator.scores), dict(evaluator.predictions)
    # Hashing reads the whole file of weights: do it once per model, not per split.
    hash_of = functools.cache(lambda folder: weights_sha256(formats.recognize(folder)))

    def store_outputs(checkpoint: str, folder: str) -> None:
        for split, outputs in evaluator.outputs.items():
            digest = splits[split].sha256()
            origin = Origin(task.name, labels, digest, hash_of(folder))
            write_outputs(outputs_path(output_dir, split, checkpoint), outputs, origin)

    if writes:
        store_outputs("last", last)  # Before other weights are loaded.
    wait_for_all(model.distribute_strategy)  # Until the first worker has written both models.
    best = best_folder(output_dir)
    if hash_of(best) != hash_of(last):  # Otherwise the best one has just been evaluated.
        native.load_weights(model, best)
        evaluator()
    results = [
        Result(
            task=task.name,
            split=split,
            num_examples=len(splits[split]),
            key=task.key,
            best_on=task.dev_splits[0],
            best=Scored(_step_of(best), evaluator.scores[split], hash_of(best)),
            last=Scored(_step_of(last), last_scores[split], hash_of(last)),
            data_sha256={**trained_on, split: splits[split].sha256()},
            notes=tuple(task.remarks(features, evaluator.predictions[split], labels)),
            **origin,
        )
        for split, features in evaluator.features.items()
    ]
    if writes:
        store_outputs("best", best)
        for split, features in evaluator.features.items():
            path = predictions_path(output_dir, task.name, split)
            task.write(path, features, labels, evaluator.predictions[split])
        write_results(output_dir, results)
        print(results_table(results), end="")
        remarks = remarks_on_forgetting(task, evaluator.features, last_predictions, labels, results)
        for sentence in (*remarks, *remarks_on_rescoring(results)):
            print(sentence)
        print(f"Results: {os.path.join(output_dir, TABLE_FILE)}")
    return results


def remarks_on_forgetting(
    task: Task,
    features: Mapping[str, Features],
    last_predictions: Mapping[str, Predictions],
    labels: Sequence[str],
    results: Sequence[Result],
) -> list[str]:
    """Sentences about a last model that has learned nothing, although the best one has: one for
    each remark on the last model's answers.
    """
    return [
        f"The last model lost what it had learned; the best one is kept. {result.split}: {remark}"
        for result in results
        if not result.notes
        for remark in task.remarks(features[result.split], last_predictions[result.split], labels)
    ]


def remarks_on_rescoring(results: Sequence[Result]) -> list[str]:
    """Sentences about a last model that, scored again, is better than the one that was best in
    training, as may happen in another precision or on another processor.
    """
    sentences = []
    for result in results:
        best, last = (scored.metrics[result.key] for scored in (result.best, result.last))
        # The checkpoint was not chosen on other splits, so the last one may well be better there.
        if best is None or last is None or result.split != result.best_on:
            continue
        if best < last:
            sentences.append(
                f"{result.split}: scored again, the last model has {result.key} {last:.4f}, and "
                f"the best one {best:.4f}. The precision or processor may differ from training."
            )
    return sentences


def _step_of(folder: str) -> int:
    """The update after which a model folder was written."""
    metadata = native.read_metadata(folder)
    # The best model is written with its step, the last one with the number of all steps.
    return metadata["step"] if "step" in metadata else metadata["num_train_steps"]


def next_commands(task: Task, data: TaskData, output_dir: str, labels: Sequence[str]) -> list[str]:
    """Command lines to suggest after a run: prediction, if the program has the task and can read
    its data, and export, if the task names one and has the classes for it.
    """
    commands = []
    given = _data_to_predict(task, data)
    if given and task.name in TASKS:
        commands.append(
            f"python -m albert_tf.run_finetuning --mode=predict --task={task.name} "
            f"--output_dir={output_dir} {given}"
        )
    if task.export_task and (labels or task.export_task == "embedding"):  # Vectors need no classes.
        commands.append(
            f"python -m export.run_export --model_dir={best_folder(output_dir)} "
            f"--task={task.export_task} --output_dir=..."
        )
    return commands


def _data_to_predict(task: Task, data: TaskData) -> str:
    """The flag that names the data to predict; "" for examples in memory, which have none."""
    # A task with the split "predict" has no test set in its folder, only files named by flag.
    if data.data_dir and task.test_splits != ("predict",):
        return f"--data_dir={data.data_dir}"
    return f"--predict_file=...{_columns(task)}" if task.file_reader else ""


def _columns(task: Task) -> str:
    """The flags of a task's columns and labels that differ from the defaults."""
    usual = TASKS[task.name].data_settings if task.name in TASKS else {}
    names = ("text_column", "pair_column", "multi_label", "label_separator")
    values = {name: task.data_settings.get(name) for name in names}
    # The default, which a task stores in the same way as a given separator.
    if values["label_separator"] == ",":
        del values["label_separator"]
    return "".join(
        f" --{name}" if value is True else f" --{name}={shlex.quote(str(value))}"
        for name, value in values.items()
        if value != usual.get(name)
    )
