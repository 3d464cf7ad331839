"""The end of a fine-tuning run: both checkpoints scored, answers and scores written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import formats, huggingface, native, replacement
from albert_tf.finetuning.evaluation import ScoreEvaluator
from albert_tf.finetuning.results import TABLE_FILE, Result, Scored, results_table, write_results
from albert_tf.finetuning.spec import FineTuning, Kept
from albert_tf.keras_compat import keras
from albert_tf.metrics import Scores
from albert_tf.training.strategy import is_chief
from data_pipeline.files import atomic_files
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split

BEST_MODEL, LAST_MODEL = "model", "last_model"
# Beside the models: answers on the dev splits, and what an ensemble needs of each model's outputs.
PREDICTIONS, KEPT = "predictions", "outputs"


def conclude(
    task: FineTuning,
    model: keras.Model,
    evaluator: ScoreEvaluator,
    features: Mapping[str, Features],
    labels: Sequence[str],
    output_dir: str,
    splits: Mapping[str, Split],
    *,
    seed: int,
    preset: str | None,
    init_sha256: str | None,
) -> list[Result]:
    """Scores the best model as it lies in its folder, and writes what the run has found.

    Args:
      task: of the run.
      model: as it is after the last step; takes the weights of the best one.
      evaluator: of `model`, which it has just evaluated.
      features: those of the dev splits, by name.
      labels: names of the classes.
      output_dir: folder of the run.
      splits: examples by split, those that were trained on among them.
      seed, preset, init_sha256: see Result.

    Returns:
      The scores of each dev split.
    """
    last_scores = dict(evaluator.scores)
    writes = is_chief(model.distribute_strategy)
    if writes:
        _write_kept(output_dir, "last", evaluator.kept)
    native.load_weights(model, best_folder(output_dir))
    evaluator()
    best, last = best_folder(output_dir), os.path.join(output_dir, LAST_MODEL)
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
            data_sha256={
                name: splits[name].sha256() for name in dict.fromkeys((task.train_split, split))
            },
            init_sha256=init_sha256,
            notes=task.remarks(features[split], evaluator.predictions[split]),
        )
        for split in task.dev_splits
    ]
    if writes:
        _write_kept(output_dir, "best", evaluator.kept)
        for split in task.dev_splits:
            path = predictions_path(output_dir, task.name, split)
            task.write(path, features[split], labels, evaluator.predictions[split])
        write_results(output_dir, results)
        print(results_table(results), end="")
        print(f"Results: {os.path.join(output_dir, TABLE_FILE)}")
    return results


def best_folder(output_dir: str) -> str:
    """The model folder of a run that is meant to be used: the best one, or the last one where no
    checkpoint had a score.
    """
    best = os.path.join(output_dir, BEST_MODEL)
    last = os.path.join(output_dir, LAST_MODEL)
    has_best = tf.io.gfile.exists(replacement.existing(best))
    return last if not has_best and tf.io.gfile.exists(last) else best


def _scored(folder: str, scores: Scores) -> Scored:
    """The scores of a model folder, with what it is known by."""
    metadata = native.read_metadata(folder)
    step = metadata["step"] if "step" in metadata else metadata["num_train_steps"]
    return Scored(step, scores, weights_sha256(formats.recognize(folder)))


def predictions_path(output_dir: str, task: str, split: str) -> str:
    """Path of the answers on a split, without its ending; its folder is made."""
    folder = os.path.join(output_dir, PREDICTIONS)
    tf.io.gfile.makedirs(folder)
    return os.path.join(folder, f"{task}_{split}")


def kept_path(output_dir: str, split: str, checkpoint: str) -> str:
    """Path of what was kept of a model's outputs on a split; checkpoint: "best" or "last"."""
    return os.path.join(output_dir, KEPT, f"{split}.{checkpoint}.npz")


def _write_kept(output_dir: str, checkpoint: str, kept: Mapping[str, Kept]) -> None:
    tf.io.gfile.makedirs(os.path.join(output_dir, KEPT))
    for split, arrays in kept.items():
        with atomic_files.writing(kept_path(output_dir, split, checkpoint)) as file:
            np.savez(file, **arrays)


def weights_sha256(source: formats.Source) -> str:
    """Hash of the file of a model's weights."""
    path = source.path
    if source.format == "huggingface":
        path = os.path.join(path, huggingface.WEIGHTS_FILE)
    else:
        prefix = os.path.join(path, native.WEIGHTS_PREFIX) if source.format == "native" else path
        (path,) = tf.io.gfile.glob(f"{prefix}.data-*-of-*")
    return atomic_files.sha256(path)
