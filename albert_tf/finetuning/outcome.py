"""The end of a fine-tuning run: both checkpoints scored, answers and scores written."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence

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
    best_folder,
    outputs_path,
    predictions_path,
    weights_sha256,
)
from albert_tf.finetuning.runs.stored_outputs import outputs_origin, write_outputs
from albert_tf.finetuning.tasks.base import Predictions, Task
from albert_tf.keras_compat import keras
from albert_tf.training.strategy import is_chief, wait_for_all
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split


@dataclasses.dataclass(frozen=True)
class Origin:
    """The origin of a fine-tuned model, for results.json; see `Result`.

    Attributes:
      seed: of output layer, order and dropout.
      preset: the published model that it began with; None: another.
      init_sha256: hash of the initial weights; None: random ones.
      trained_on: the split that was trained on, and the hash of its examples.
    """

    seed: int
    preset: str | None
    init_sha256: str | None
    trained_on: Mapping[str, str]


def conclude(
    task: Task,
    model: keras.Model,
    evaluator: ScoreEvaluator,
    labels: Sequence[str],
    splits: Mapping[str, Split],
    output_dir: str,
    origin: Origin,
) -> list[Result]:
    """Scores the best model, and writes what the run has found.

    Args:
      task: of the run.
      model: as it is after the last step; takes the weights of the best one.
      evaluator: of `model` on the dev splits, which it has just evaluated.
      labels: names of the classes.
      splits: examples of the dev splits, by name.
      output_dir: folder of the run.
      origin: of the model.

    Returns:
      The scores of each dev split.
    """
    writes = is_chief(model.distribute_strategy)
    last = os.path.join(output_dir, LAST_MODEL)
    last_scores, last_predictions = dict(evaluator.scores), dict(evaluator.predictions)
    hash_of = functools.cache(lambda folder: weights_sha256(formats.recognize(folder)))

    def store_outputs(checkpoint: str, folder: str) -> None:
        for split, outputs in evaluator.outputs.items():
            about = outputs_origin(task, labels, splits[split], hash_of(folder))
            write_outputs(outputs_path(output_dir, split, checkpoint), outputs, about)

    if writes:
        store_outputs("last", last)
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
            seed=origin.seed,
            preset=origin.preset,
            data_sha256={**origin.trained_on, split: splits[split].sha256()},
            init_sha256=origin.init_sha256,
            notes=tuple(task.remarks(features, evaluator.predictions[split], labels)),
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
        remarks = fallen_back(task, evaluator.features, last_predictions, labels, results)
        for sentence in (*remarks, *overtaken(results)):
            print(sentence)
        print(f"Results: {os.path.join(output_dir, TABLE_FILE)}")
    return results


def fallen_back(
    task: Task,
    features: Mapping[str, Features],
    last_predictions: Mapping[str, Predictions],
    labels: Sequence[str],
    results: Sequence[Result],
) -> list[str]:
    """Sentences about a last model that tells no examples apart, where the best one does.

    Args:
      task: of the run.
      features: rows of the dev splits, by name.
      last_predictions: the last model's answers, by split.
      labels: names of the classes.
      results: of the best model.

    Returns:
      One sentence for each remark on the last model's answers.
    """
    return [
        f"The last model has fallen back, and the best one is kept. {result.split}: {remark}"
        for result in results
        if not result.notes
        for remark in task.remarks(features[result.split], last_predictions[result.split], labels)
    ]


def overtaken(results: Sequence[Result]) -> list[str]:
    """Sentences about a last model that now scores higher than the one that was best in training,
    as it may in another precision or on another processor.
    """
    sentences = []
    for result in results:
        best, last = (each.metrics[result.key] for each in (result.best, result.last))
        if best is None or last is None or result.split != result.best_on:
            continue
        if best < last:
            sentences.append(
                f"{result.split}: scored again, the last model's {result.key} is {last:.4f} and "
                f"that of the best one {best:.4f}. Perhaps precision or processor are others than "
                "in training."
            )
    return sentences


def _step_of(folder: str) -> int:
    """The update after which a model folder was written."""
    metadata = native.read_metadata(folder)
    return metadata["step"] if "step" in metadata else metadata["num_train_steps"]
