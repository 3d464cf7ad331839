"""Fine-tuning runs from weights or from scratch: a search on one seed, then the other seeds.

work/rte/shipped/0.0001-3-seed-0.json       answers and score of a finished run
work/rte/shipped/0.0001-3-seed-0            the folder of an unfinished run
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from albert_tf.finetuning.runs.run_files import weights_sha256
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.training import FineTuningSettings, finetune
from albert_tf.keras_compat import keras
from albert_tf.optimization import Recipe
from albert_tf.pretrained.loading import locate
from albert_tf.training import InitialModel, LoopSettings, OptimizerSettings, RunSettings
from albert_tf.training.devices import Devices
from data_pipeline.files import atomic_files
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from experiments.weights.tasks import WeightsTask


@dataclasses.dataclass(frozen=True)
class Plan:
    """The search settings, the same for every start.

    Attributes:
      learning_rates, epochs: each combination is tried with seed 0.
      num_seeds: number of runs with the best combination, including that with seed 0.
      train_batch_size: B.
      max_seq_length: S.
    """

    learning_rates: Sequence[float]
    epochs: Sequence[float]
    num_seeds: int
    train_batch_size: int = 32
    max_seq_length: int = 128


@dataclasses.dataclass(frozen=True)
class Trained:
    """The runs with the best combination from one start.

    Attributes:
      predictions: [runs, N], answers on the dev set after the last step, by seed.
      scores: the score of each run, in percent.
      chosen: the combination as readable text.
    """

    predictions: np.ndarray
    scores: list[float]
    chosen: str


def train_all(
    task: WeightsTask,
    start: InitialModel,
    vocab_file: str,
    splits: dict[str, Split],
    plan: Plan,
    folder: Path,
    devices: Devices,
) -> Trained:
    """Searches with seed 0, then runs the other seeds with the result; reads finished runs."""
    labels = task.gold(splits["dev"])
    answers = functools.partial(
        _answers, task, start, vocab_file, splits, plan, folder, devices=devices
    )
    grid = list(itertools.product(plan.learning_rates, plan.epochs))
    first = {point: answers(*point, seed=0) for point in grid}
    best = max(grid, key=lambda point: task.score(labels, first[point]))
    others = [answers(*best, seed=seed) for seed in range(1, plan.num_seeds)]
    predictions = np.stack([first[best], *others])
    scores = [task.score(labels, run) for run in predictions]
    return Trained(predictions, scores, f"rate {best[0]:g}, {best[1]:g} epochs")


def _answers(
    task: WeightsTask,
    start: InitialModel,
    vocab_file: str,
    splits: dict[str, Split],
    plan: Plan,
    folder: Path,
    learning_rate: float,
    epochs: float,
    *,
    seed: int,
    devices: Devices,
) -> np.ndarray:
    """[N] answers of one run on the dev set; trains it unless it is finished."""
    path = folder / f"{learning_rate:g}-{epochs:g}-seed-{seed}"
    record = path.with_name(f"{path.name}.json")
    about = {
        "train_examples": splits["train"].sha256(),
        "dev_examples": splits["dev"].sha256(),
        "weights": _weights_of(start),
        "preset": start.preset,
        "vocabulary": atomic_files.file_sha256(vocab_file),
        "precision": keras.mixed_precision.global_policy().name,
        **dataclasses.asdict(dataclasses.replace(plan, learning_rates=(), epochs=(), num_seeds=0)),
    }
    about = json.loads(json.dumps(about))  # Tuples become lists, as in the file to compare with.
    if record.exists():
        finished = json.loads(record.read_text(encoding="utf-8"))
        if finished["about"] == about:
            return task.numbers(finished["predictions"])
    settings = FineTuningSettings(
        learning_rate=learning_rate,
        train_batch_size=plan.train_batch_size,
        num_train_epochs=epochs,
        lengths=LengthSettings(plan.max_seq_length),
        vocab_file=vocab_file,
        seed=seed,
    )

    def run_settings(recipe: Recipe) -> RunSettings:
        optimizer = OptimizerSettings(
            "adamw", recipe.learning_rate, recipe.num_warmup_steps, bias_correction=True
        )
        loop = LoopSettings(recipe.num_train_steps, steps_per_loop=50, checkpoint_steps=500)
        return RunSettings(str(path), optimizer, loop)

    finetune(start, task.name, TaskData(splits=splits), str(path), settings, devices, run_settings)
    predictions = task.answers(str(path), splits["dev"])
    content = json.dumps({"about": about, "predictions": predictions})
    atomic_files.write_bytes(str(record), content.encode("utf-8"))
    shutil.rmtree(path)  # Only its answers are used.
    return task.numbers(predictions)


def _weights_of(start: InitialModel) -> str | None:
    """Hash of the weights of a start; None for random weights."""
    return weights_sha256(locate(start.init_checkpoint)) if start.init_checkpoint else None
