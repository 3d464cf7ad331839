"""The end of a fine-tuning run: both checkpoints scored, answers and scores written."""

from __future__ import annotations

import functools
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import formats, huggingface, native, replacement
from albert_tf.errors import UserError
from albert_tf.finetuning.evaluation import ScoreEvaluator
from albert_tf.finetuning.results import TABLE_FILE, Result, Scored, results_table, write_results
from albert_tf.finetuning.spec import FineTuning, Kept, Predictions
from albert_tf.keras_compat import keras
from albert_tf.metrics import Scores
from albert_tf.training.strategy import is_chief, wait_for_all
from data_pipeline.files import atomic_files, storage
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split

BEST_MODEL, LAST_MODEL = native.RUN_MODEL, "last_model"
# Beside the models: answers on the dev splits, and what an ensemble needs of each model's outputs.
PREDICTIONS, KEPT = "predictions", "outputs"
_ABOUT = "about"  # Name of the array in a file of outputs that says what they are of.


def conclude(
    task: FineTuning,
    model: keras.Model,
    evaluator: ScoreEvaluator,
    features: Mapping[str, Features],
    labels: Sequence[str],
    output_dir: str,
    splits: Mapping[str, Split],
    trained_on: Mapping[str, str],
    *,
    seed: int,
    preset: str | None,
    init_sha256: str | None,
) -> list[Result]:
    """Scores the best model, and writes what the run has found.

    Args:
      task: of the run.
      model: as it is after the last step; takes the weights of the best one.
      evaluator: of `model`, which it has just evaluated.
      features: those of the dev splits, by name.
      labels: names of the classes.
      output_dir: folder of the run.
      splits: examples of the dev splits, by name.
      trained_on: the split that was trained on, and the hash of its examples.
      seed, preset, init_sha256: see Result.

    Returns:
      The scores of each dev split.
    """
    last_scores, last_predictions = dict(evaluator.scores), dict(evaluator.predictions)
    writes = is_chief(model.distribute_strategy)
    origin = functools.partial(kept_origin, task, labels)
    if writes:
        for split, kept in evaluator.kept.items():
            about = origin(splits[split], os.path.join(output_dir, LAST_MODEL))
            write_kept(kept_path(output_dir, split, "last"), kept, about)
    wait_for_all(model.distribute_strategy)  # Until the first worker has written both models.
    best, last = best_folder(output_dir), os.path.join(output_dir, LAST_MODEL)
    if _weights_of(best) != _weights_of(last):  # Otherwise the best one has just been evaluated.
        native.load_weights(model, best)
        evaluator()
    results = [
        Result(
            task=task.name,
            split=split,
            num_examples=len(splits[split]),
            key=task.key,
            best_on=task.dev_splits[0],
            best=_scored(best, evaluator.scores[split]),
            last=_scored(last, last_scores[split]),
            seed=seed,
            preset=preset,
            data_sha256={**trained_on, split: splits[split].sha256()},
            init_sha256=init_sha256,
            notes=tuple(task.remarks(features[split], evaluator.predictions[split], labels)),
        )
        for split in task.dev_splits
    ]
    if writes:
        for split in task.dev_splits:
            about = origin(splits[split], best)
            write_kept(kept_path(output_dir, split, "best"), evaluator.kept[split], about)
            path = predictions_path(output_dir, task.name, split)
            task.write(path, features[split], labels, evaluator.predictions[split])
        write_results(output_dir, results)
        print(results_table(results), end="")
        for sentence in fallen_back(task, features, last_predictions, labels, results):
            print(sentence)
        print(f"Results: {os.path.join(output_dir, TABLE_FILE)}")
    return results


def fallen_back(
    task: FineTuning,
    features: Mapping[str, Features],
    last_predictions: Mapping[str, Predictions],
    labels: Sequence[str],
    results: Sequence[Result],
) -> list[str]:
    """Sentences about a last model that tells no examples apart, where the best one does.

    Args:
      task: of the run.
      features: those of the dev splits, by name.
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


def best_folder(output_dir: str) -> str:
    """The model folder of a run that is meant to be used: the best one, or the last one where no
    checkpoint had a score.
    """
    best = os.path.join(output_dir, BEST_MODEL)
    last = os.path.join(output_dir, LAST_MODEL)
    has_best = tf.io.gfile.exists(replacement.existing(best))
    return last if not has_best and tf.io.gfile.exists(last) else best


def answering_folder(run: str, init_checkpoint: str | None) -> str:
    """The model folder that answers where a run is named.

    Args:
      run: folder of the run.
      init_checkpoint: one of the run's own models is taken; another one only where the run has
        none, since a command of training may be repeated as it is with another mode.
    """
    own = best_folder(run)
    if not init_checkpoint:
        return own
    beside = os.path.dirname(init_checkpoint.rstrip("/"))
    is_of_run = os.path.realpath(beside) == os.path.realpath(run)
    if is_of_run or not tf.io.gfile.exists(own):
        return init_checkpoint
    print(f"{own} answers; --init_checkpoint={init_checkpoint} is what the run began with.")
    return own


def _scored(folder: str, scores: Scores) -> Scored:
    """The scores of a model folder, with what it is known by."""
    metadata = native.read_metadata(folder)
    step = metadata["step"] if "step" in metadata else metadata["num_train_steps"]
    return Scored(step, scores, _weights_of(folder))


def _weights_of(folder: str) -> str:
    """Hash of the weights in a model folder."""
    return weights_sha256(formats.recognize(folder))


def predictions_path(output_dir: str, task: str, split: str) -> str:
    """Path of the answers on a split, without its ending; its folder is made."""
    path = answers_path(output_dir, task, split)
    tf.io.gfile.makedirs(os.path.dirname(path))
    return path


def answers_path(output_dir: str, task: str, split: str) -> str:
    """Path of the answers on a split, without its ending."""
    return os.path.join(output_dir, PREDICTIONS, f"{task}_{split}")


def kept_path(output_dir: str, split: str, checkpoint: str) -> str:
    """Path of what was kept of a model's outputs on a split; checkpoint: "best" or "last"."""
    return os.path.join(output_dir, KEPT, f"{split}.{checkpoint}.npz")


def kept_origin(
    task: FineTuning, labels: Sequence[str], examples: Split, model_folder: str
) -> dict[str, Any]:
    """The origin of outputs, by which those of several models are found to belong together.

    Args:
      task: that was answered.
      labels: names of the model's classes.
      examples: that were answered.
      model_folder: folder of the model.

    Returns:
      An object for JSON.
    """
    return {
        "task": task.name,
        "labels": list(labels),
        "data_sha256": examples.sha256(),
        "model_sha256": _weights_of(model_folder),
    }


def write_kept(path: str, kept: Kept, about: Mapping[str, Any]) -> None:
    """Writes what was kept of a model's outputs and its `kept_origin` to one file, atomically."""
    tf.io.gfile.makedirs(os.path.dirname(path))
    with atomic_files.writing(path) as file:
        np.savez(file, **kept, **{_ABOUT: np.array(json.dumps(dict(about)))})


def read_kept(path: str) -> tuple[Kept, dict[str, Any]]:
    """The kept outputs of a model, and their `kept_origin`.

    Raises:
      UserError: the file is damaged.
    """
    try:
        with np.load(io.BytesIO(storage.read_bytes(path))) as file:
            kept = {name: file[name] for name in file.files}
        return kept, json.loads(str(kept.pop(_ABOUT)))
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise UserError(
            f"{path} is damaged or of another version. Evaluate or predict with the model again."
        ) from None


def weights_sha256(source: formats.Source) -> str:
    """Hash of the file of a model's weights."""
    path = source.path
    if source.format == "huggingface":
        path = os.path.join(path, huggingface.WEIGHTS_FILE)
    else:
        prefix = os.path.join(path, native.WEIGHTS_PREFIX) if source.format == "native" else path
        (path,) = tf.io.gfile.glob(f"{prefix}.data-*-of-*")
    return atomic_files.sha256(path)
