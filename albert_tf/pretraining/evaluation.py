"""Held-out evaluation of pre-training: in a run, of a finished model, of a run elsewhere."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.checkpoints.formats import Source
from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.pretrained.loading import locate
from albert_tf.pretraining.objectives import (
    MaskedWords,
    Pretrainer,
    detection_baselines,
    objective_of,
    span_baselines,
)
from albert_tf.training import Evaluator, run_folder, starts
from albert_tf.training.batch_sizes import BatchSizes
from albert_tf.training.devices import Devices
from albert_tf.training.evaluation import (
    evaluate_checkpoints,
    evaluation_batch_size,
    print_comparison,
)
from albert_tf.training.initial_model import InitialModel, check_data_fit
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.statistics import pretraining_baselines
from data_pipeline.records.record_folder import content_fingerprint, read_manifest
from data_pipeline.tokenizers.loading import load_tokenizer


class HeldOut:
    """Held-out records: at most one folder for each sentence objective."""

    def __init__(self, folders: Sequence[str], batch_size: int = 64) -> None:
        """
        Args:
          folders: folders of records, at least one.
          batch_size: sequences per evaluation step, over all replicas.

        Raises:
          UserError: there is no folder, or there are two with the same objective.
        """
        if not folders:
            raise UserError(
                "--eval_data is missing: folders of records that create_pretraining_data wrote."
            )
        self.folders, self.batch_size = list(folders), batch_size
        self._manifests: dict[str, dict[str, Any]] = {}  # By sentence objective.
        for folder in folders:
            manifest = read_manifest(folder)
            objective = manifest["settings"]["sentence_objective"]
            if objective in self._manifests:
                raise UserError(
                    f"--eval_data={','.join(folders)} has two folders with the sentence "
                    f"objective {objective!r}. Name one for each objective."
                )
            self._manifests[objective] = manifest

    def sha256(self) -> str:
        """Hash of the records, independent of their paths."""
        # By objective, not by path: a resumed run may find the same records elsewhere.
        files = {name: content_fingerprint(each) for name, each in self._manifests.items()}
        return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()

    def evaluator(self, model: Pretrainer, vocab_fingerprint: str | None) -> Evaluator:
        """An Evaluator of a model on every folder, each with the objective of its records.

        vocab_fingerprint: of the vocabulary that the model was made with; None if it is not known.
        A UserError if records do not fit the model, or a batch does not fit into memory.
        """
        parts, strategy = [], model.distribute_strategy
        for folder, (objective, manifest) in zip(self.folders, self._manifests.items()):
            length = manifest["max_seq_length"]
            check_data_fit(model.config, manifest["vocab_size"], length, folder)
            batch_size = evaluation_batch_size(
                model.config, self.batch_size, length, manifest["num_records"], strategy
            )
            data: Callable[..., tf.data.Dataset] = functools.partial(
                pretraining_dataset,
                folder,
                batch_size,
                training=False,
                vocab_fingerprint=vocab_fingerprint,
            )
            learned = objective_of(model)
            # Always seed 0, so that a generator draws the same at every evaluation of a run.
            batches = learned.batches(data, 0, BatchSizes.of(batch_size))
            parts.append((learned.losses(objective), batches))
        return Evaluator(parts, strategy)

    def print_results(
        self, metrics: dict[str, float], train_manifest: dict[str, Any] | None
    ) -> None:
        """Prints the figures of `evaluator` next to baselines, which are guesses without a model.

        train_manifest: of the training records, from whose counts the guesses are made; None: from
        the counts of the held-out records.
        """
        fitted = "" if train_manifest else ", baselines of these records"
        for number, (objective, manifest) in enumerate(self._manifests.items()):
            baselines = pretraining_baselines(train_manifest or manifest, manifest)
            names = [name for name in PretrainingObjective.metrics_of(objective) if name in metrics]
            if number:  # The figures of the words are those of the first folder.
                names = [name for name in names if not name.startswith("masked_lm")]
            else:  # Detection and spans are measured on the first folder, too.
                length = manifest["statistics"]["mean_length"]
                others = {**detection_baselines(metrics), **span_baselines(metrics, length)}
                names, baselines = [*names, *others], {**baselines, **others}
            figures = {name: (metrics[name], *baselines[name]) for name in names}
            folder = self.folders[number]
            print_comparison(f"Held-out evaluation on {folder}{fitted}", figures)


def evaluate_model(
    name_or_path: str,
    held_out: HeldOut,
    devices: Devices,
    train_manifest: dict[str, Any] | None = None,
) -> dict[str, float]:
    """Evaluates a finished model, and prints the figures.

    Args:
      name_or_path: a model for pre-training, see `locate`.
      held_out: the records.
      devices: the devices that the model computes on.
      train_manifest: see `HeldOut.print_results`.

    Returns:
      The figures by name.

    Raises:
      UserError: the model is for another task, or of another vocabulary than the records.
    """
    with devices.strategy.scope():
        model, vocab_fingerprint = _finished_model(locate(name_or_path), devices.packed)
    metrics = held_out.evaluator(model, vocab_fingerprint)()
    held_out.print_results(metrics, train_manifest)
    return metrics


def _finished_model(source: Source, packed: bool) -> tuple[AlbertPretrainer, str | None]:
    """The model of a source, and the fingerprint of its vocabulary, if that is known."""
    if not source.is_own:
        model = AlbertPretrainer(source.config(), packed=packed)
        InitialModel(init_checkpoint=source.path).load_weights(model)
        return model, source.vocab_file and load_tokenizer(source.vocab_file).fingerprint
    model, metadata = native.load_model(source.path, packed), source.metadata()
    if not isinstance(model, AlbertPretrainer):
        raise UserError(f"{source.path} holds a model for {metadata['task']}, not for pretraining.")
    return model, metadata.get("vocab_fingerprint")


def evaluate_run(
    run_dir: str,
    held_out: HeldOut,
    devices: Devices,
    num_train_steps: int,
    timeout: float,
    train_manifest: dict[str, Any] | None = None,
) -> dict[str, float]:
    """Evaluates the checkpoints of a run as they appear, and prints the last figures.

    Args:
      run_dir: folder of the run, which another process trains.
      held_out: the records.
      devices: the devices that the model computes on.
      num_train_steps: the run's last step, whose checkpoint is the last to be evaluated.
      timeout: seconds to wait for a new checkpoint.
      train_manifest: see `HeldOut.print_results`.

    Returns:
      The last figures by name.

    Raises:
      UserError: there is no such run, or no checkpoint came.
    """
    config, must_not_change = run_folder.read(run_dir)
    if "task" in must_not_change:
        raise UserError(
            f"--output_dir={run_dir} is a fine-tuning run. Name a pre-training run, or evaluate "
            "this one with --mode=eval of run_finetuning."
        )
    # Runs of earlier versions do not record their objective.
    objective, reason = must_not_change.get("objective", MaskedWords.name), ""
    if objective != MaskedWords.name:
        reason = f"--objective={objective}, which --mode=continuous_eval does not evaluate"
    elif "hidden" in must_not_change.get("distillation", {}):
        reason = "--distillation=hidden, whose checkpoints have one layer more than the model"
    elif decay := starts.last_flags(run_dir).get("ema_decay"):
        reason = f"--ema_decay={decay}, whose averages --mode=continuous_eval does not read"
    if reason:
        raise UserError(
            f"--output_dir={run_dir} is a run of {reason}. Pass --eval_data and --eval_steps to "
            "the training."
        )
    with devices.strategy.scope():
        model = AlbertPretrainer(config, packed=devices.packed)
    evaluator = held_out.evaluator(model, must_not_change["vocab_fingerprint"])
    metrics = evaluate_checkpoints(model, evaluator, run_dir, num_train_steps, timeout)
    if not metrics:
        raise UserError(
            f"no checkpoint appeared in --output_dir={run_dir} within --eval_timeout={timeout} "
            "seconds. Check that the run is being trained, or wait longer."
        )
    held_out.print_results(metrics, train_manifest)
    return metrics
