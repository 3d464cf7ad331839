"""What run_pretraining trains on: records, or text that becomes examples on the way."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf import flags as shared_flags
from albert_tf.errors import UserError
from data_pipeline.command_line import flags
from data_pipeline.pretraining import settings_flags
from data_pipeline.pretraining.dataset import pretraining_dataset, source_of_batch
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records.record_folder import (
    content_fingerprint,
    explain_read_error,
    verify_records,
)
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
# Settings without a flag here.
_FIXED = {"dupe_factor": 1, "masking": "dynamic", "pack_documents": False}
_READING = {"vocab_file", "lower_case", "input_format", "text_field", "language"}


class TrainingData(NamedTuple):
    """Where training examples come from.

    Attributes:
      name: for messages.
      manifest: what they are, as in the manifest of records.
      fixed: what a run that goes on may not change, by name, see run_folder.prepare.
      batches: called with `start_step=`; endless global batches.
      describe_batch: says where the batch of a step (1-based) comes from; None: nobody knows.
      explain: the error to raise for one that TensorFlow raised while training.
    """

    name: str
    manifest: dict[str, Any]
    fixed: dict[str, Any]
    batches: Callable[..., tf.data.Dataset]
    describe_batch: Callable[[int], str] | None
    explain: Callable[[tf.errors.OpError], Exception]


def define_data_flags() -> None:
    """Flags that name the data."""
    flags.DEFINE_string("train_data", None, "Folder of training records.")
    flags.DEFINE_string(
        "train_text",
        None,
        "Text files (globs, separated by commas) to train on without records, instead of "
        "--train_data. The flags of create_pretraining_data say how they are read.",
    )
    flags.DEFINE_list(
        "eval_data", [], "Folders of held-out records, at most one for each sentence objective."
    )
    flags.DEFINE_string(
        "vocab_file", None, "Vocabulary for --train_text; default: that of --init_checkpoint."
    )
    settings_flags.define_flags()


def open_training_data() -> TrainingData:
    """What --train_data or --train_text names.

    Raises:
      UserError: neither or both are given, or it is missing, damaged or empty.
    """
    if FLAGS.train_text:
        return _text()
    if not FLAGS.train_data:
        raise UserError(
            "--train_data is missing: a folder of records that create_pretraining_data wrote. Or "
            "train without records: name text files by --train_text."
        )
    folder, options = FLAGS.train_data, {"seed": FLAGS.seed}
    fields = {field.name for field in dataclasses.fields(PretrainingSettings)}
    given = sorted(name for name in (fields | _READING) - {"seed", *_FIXED} if FLAGS[name].present)
    if given:
        raise UserError(
            f"--{given[0]} says how --train_text is read, and {folder} holds records. Leave it "
            "out, or make other records with create_pretraining_data."
        )

    def explain(error: tf.errors.OpError) -> Exception:
        is_damage = isinstance(error, tf.errors.DataLossError)
        return explain_read_error(folder, error) if is_damage else error

    manifest = verify_records(folder)
    return TrainingData(
        folder,
        manifest,
        {**_vocabulary(manifest), "records": content_fingerprint(manifest), "text": None},
        functools.partial(pretraining_dataset, folder, FLAGS.train_batch_size, **options),
        functools.partial(source_of_batch, folder, FLAGS.train_batch_size, **options),
        explain,
    )


def _text() -> TrainingData:
    from data_pipeline.pretraining.without_records.files import (  # Needs tensorflow_text.
        TrainingText,
    )

    if FLAGS.train_data:
        raise UserError("--train_data and --train_text are both given. Give one.")
    tokenizer = load_tokenizer(shared_flags.vocabulary_file(), FLAGS.lower_case)
    text = TrainingText(
        settings_flags.corpus_from_flags(FLAGS.train_text),
        tokenizer,
        settings_flags.settings_from_flags(**_FIXED),
    )
    batches = functools.partial(text.batches, FLAGS.train_batch_size, seed=FLAGS.seed)
    manifest = text.manifest()
    fixed = {
        **_vocabulary(manifest),
        "records": None,
        "text": content_fingerprint(manifest),
        **manifest["settings"],
        **manifest["tokenizer"],
        **manifest["reading"],
    }
    return TrainingData(FLAGS.train_text, manifest, fixed, batches, None, text.explain)


def _vocabulary(manifest: dict[str, Any]) -> dict[str, Any]:
    return {"vocab_fingerprint": manifest["vocab_fingerprint"]}
