"""The training data of pre-training: records, or text from which examples are made in training."""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import run_folder
from albert_tf.training.batch_sizes import BatchSizes
from albert_tf.training.experiment import TrainingData
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.dataset import pretraining_dataset, source_of_batch
from data_pipeline.pretraining.dynamic_masking import DRAWS
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.without_records.files import TrainingText
from data_pipeline.records.record_folder import (
    content_fingerprint,
    explain_read_error,
    verify_records,
)
from data_pipeline.tokenizers.base import Tokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingData(TrainingData):
    """Examples for the masked language model and a sentence objective.

    Attributes:
      manifest: the manifest of the records, or its equivalent for text.
      has_statistics: whether the manifest has the counts of tokens and labels that baselines need.
    """

    manifest: dict[str, Any]
    has_statistics: bool

    @property
    def sentence_objective(self) -> str:
        """The objective of the segments: "sop", "nsp" or "none"."""
        return self.manifest["settings"]["sentence_objective"]

    @property
    def vocab_file(self) -> str:
        """Path of the vocabulary."""
        return os.path.join(self.manifest["directory"], self.manifest["vocab_file"])


def open_records(
    folder: str,
    batch_size: int | str,
    seed: int = 0,
    recurring_mask_share: float | None = None,
    mask_schedule: str | None = None,
) -> PretrainingData:
    """The data of a folder of records, which create_pretraining_data wrote.

    Args:
      folder: the folder.
      batch_size: B, over all replicas; or several sizes with the steps from which they hold, as in
        "64@0,128@5000".
      seed: decides the order of the records, dynamic masks and dropout.
      recurring_mask_share: the setting of that name for dynamic masks; None: the records' own.
      mask_schedule: see `PretrainingSettings`; None: the records' own share of masks.

    Returns:
      Data with a number of examples and with statistics.

    Raises:
      UserError: the folder is missing, damaged or empty, or its masks are static and a setting of
        dynamic masks is given.
    """
    manifest = verify_records(folder)
    sizes = BatchSizes.of(batch_size)
    masks = {"recurring_mask_share": recurring_mask_share, "mask_schedule": mask_schedule}
    if masks := {name: value for name, value in masks.items() if value is not None}:
        manifest = _with_masks(manifest, masks)

    draws: dict[str, Any] = {}
    # Static masks are in the records: only dynamic ones depend on how they are drawn.
    if manifest["masking"] == "dynamic":
        settings = PretrainingSettings.from_manifest(manifest)
        draws = {
            name: getattr(settings, name) for name in ("recurring_mask_share", "mask_schedule")
        }
        draws["draws"] = DRAWS

    # TensorFlow's own error of a damaged record names neither the file nor a remedy.
    def explain(error: tf.errors.OpError) -> Exception:
        is_damage = isinstance(error, tf.errors.DataLossError)
        return explain_read_error(folder, error) if is_damage else error

    def source(step: int) -> str:
        return source_of_batch(folder, sizes.at(step - 1), sizes.before(step - 1), seed=seed)

    return PretrainingData(
        name=folder,
        batches=sizes.batches(
            functools.partial(pretraining_dataset, folder, seed=seed, manifest=manifest)
        ),
        describe_batch=source,
        explain=explain,
        # A resumed run compares these with the values it was started with. `text` is among them, so
        # that a run on records does not resume on text, or the other way round.
        must_not_change={
            "vocab_fingerprint": manifest["vocab_fingerprint"],
            "records": content_fingerprint(manifest),
            "text": None,
            **draws,
        },
        has_statistics=True,
        **_of_manifest(manifest, sizes, seed),
    )


def open_text(
    corpus: Corpus,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    batch_size: int | str,
    seed: int = 0,
) -> PretrainingData:
    """The data of a corpus, whose examples are made in training.

    Args:
      corpus: text files, and how they are read.
      tokenizer: the model's.
      settings: how examples are made, with dynamic masking and a single copy.
      batch_size: see `open_records`.
      seed: see `open_records`.

    Returns:
      Data without a number of examples and without statistics.

    Raises:
      UserError: there is no such file, or settings are for records only.
    """
    if settings.masking != "dynamic" or settings.dupe_factor != 1:
        raise UserError(
            "Training on text draws masks anew in every epoch: expected masking='dynamic' and "
            f"dupe_factor=1; received {settings.masking!r} and {settings.dupe_factor}. Make "
            "records for these."
        )
    text, sizes = TrainingText(corpus, tokenizer, settings), BatchSizes.of(batch_size)
    manifest = text.manifest()
    return PretrainingData(
        name=corpus.patterns if isinstance(corpus.patterns, str) else ",".join(corpus.patterns),
        batches=sizes.batches(functools.partial(text.batches, seed=seed)),
        explain=text.explain,
        must_not_change={
            "vocab_fingerprint": manifest["vocab_fingerprint"],
            "records": None,
            "text": content_fingerprint(manifest),
            "draws": DRAWS,
            # Records were made with their settings; for text, the settings still decide the
            # examples.
            **manifest["settings"],
            **manifest["tokenizer"],
            **manifest["reading"],
        },
        has_statistics=False,
        **_of_manifest(manifest, sizes, seed),
    )


def tell_of_other_draws(run_dir: str, data: PretrainingData) -> None:
    """Prints a line if the run in a folder resumes with other random numbers than those of the
    version that started it.
    """
    if "draws" not in data.must_not_change or not run_folder.holds_run(run_dir):
        return
    _, before = run_folder.read(run_dir)
    # A run on static records draws nothing, whatever its version.
    is_same_data = before.get("records") == data.must_not_change["records"]
    if "draws" not in before and is_same_data:
        drawn = "masks and pairs of segments" if data.must_not_change["text"] else "masks"
        print(
            f"The run in {run_dir} was started by an earlier version. It continues with different "
            f"random numbers for {drawn}, from the same distributions.",
            flush=True,
        )


def original_words(batch: dict[str, tf.Tensor]) -> np.ndarray:
    """The word ids of a batch before they were masked, int32 [B, S]."""
    words = batch["input_word_ids"].numpy()
    # Rows with fewer predictions are filled up with weight 0 and position 0, which is [CLS].
    row, prediction = np.nonzero(batch["masked_lm_weights"].numpy())
    position = batch["masked_lm_positions"].numpy()[row, prediction]
    words[row, position] = batch["masked_lm_ids"].numpy()[row, prediction]
    return words


def _with_masks(manifest: dict[str, Any], masks: dict[str, Any]) -> dict[str, Any]:
    """The manifest of dynamic records with other settings of masks; a UserError for static ones."""
    if manifest["masking"] == "static":
        name, value = next(iter(masks.items()))
        raise UserError(
            f"--{name}={value} changes masks that are drawn during training, but the records in "
            f"{manifest['directory']} have fixed masks. Make records with --masking=dynamic."
        )
    if "mask_schedule" in masks:  # Share and number of predictions follow from it.
        share = PretrainingSettings.masked_lm_prob
        masks = {**masks, "masked_lm_prob": share, "max_predictions_per_seq": 0}
    settings = {**manifest["settings"], **masks}
    found = PretrainingSettings.from_manifest({"settings": settings})
    return {
        **manifest,
        "settings": {**settings, **dataclasses.asdict(found)},
        "max_predictions": found.max_predictions_per_seq,
    }


def _of_manifest(manifest: dict[str, Any], sizes: BatchSizes, seed: int) -> dict[str, Any]:
    """The fields of PretrainingData that manifests of records and of text have in common."""
    return {
        "manifest": manifest,
        "batch_size": max(sizes.values),
        "batch_sizes": sizes,
        "seed": seed,
        "num_examples": manifest["num_records"],
        "max_seq_length": manifest["max_seq_length"],
        "vocab_size": manifest["vocab_size"],
    }
