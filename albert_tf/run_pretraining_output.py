"""What run_pretraining writes before and after the loop: the run's folder, the model."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.models import AlbertPretrainer
from albert_tf.run_pretraining_eval import print_results
from albert_tf.training import run_folder
from data_pipeline.command_line import flags

FLAGS = flags.FLAGS


def prepare_run_folder(
    config: AlbertConfig, data: dict[str, Any]
) -> contextlib.AbstractContextManager:
    """Makes the run's folder, or makes sure that the run in it, on the same data, can go on, and
    locks it.
    """
    fixed = {"seed": FLAGS.seed, "train_batch_size": FLAGS.train_batch_size, **data}
    return run_folder.prepare(
        FLAGS.output_dir,
        config,
        flags.resolved(),
        fixed,
        FLAGS.overwrite,
        FLAGS.allow_changes,
    )


def saved_with_model(manifest: dict[str, Any]) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """What a model folder holds beside the model, see native.save."""
    metadata = {name: manifest[name] for name in ("max_seq_length", "vocab_fingerprint")}
    vocab_file = os.path.join(manifest["directory"], manifest["vocab_file"])
    return metadata, vocab_file, manifest["tokenizer"]


def finish(
    model: AlbertPretrainer, metrics: dict[str, float], num_train_steps: int, saved: tuple
) -> None:
    """Saves the model, and says how good it is and what can be done with it."""
    model_dir = os.path.join(FLAGS.output_dir, "model")
    metadata, *vocabulary = saved
    metadata = {**metadata, "num_train_steps": num_train_steps, "metrics": metrics}
    native.save(model, model_dir, metadata, *vocabulary)
    if metrics:
        print_results(metrics)
    print(f"Model: {model_dir}\nNext: python -m albert_tf.run_classifier "
          f"--init_checkpoint={model_dir} --train_file=train.tsv --dev_file=dev.tsv "
          f"--output_dir=...\n  or: python -m export.run_export --model_dir={model_dir} "
          "--task=masked_lm --output_dir=...")  # fmt: skip
