"""Makes records of google-research/albert or of the Model Garden readable by this project.

Their create_pretraining_data writes only TFRecord files; this program reads them once
and puts a manifest, the vocabulary and the counts of labels next to them.

    python -m data_pipeline.adopt_records --data=records --vocab_file=30k-clean.model
"""

from __future__ import annotations

import os
import shlex
from typing import Any

import tensorflow as tf

from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError, message_of
from data_pipeline.files import atomic_files, lock, storage
from data_pipeline.pretraining import segments
from data_pipeline.pretraining.columns import static_counts
from data_pipeline.pretraining.manifest import extra_files, manifest_fields
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import RecordStatistics, summary_table
from data_pipeline.records import features, record_folder
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
_BATCH = 512


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Data")
    flags.DEFINE_string("data", None, "Folder of TFRecord files.", required=True)
    flags.DEFINE_string(
        "vocab_file", None, "Vocabulary that the records were made with.", required=True
    )
    tokenizer_flags.define_flags()
    flags.DEFINE_enum(
        "sentence_objective",
        "sop",
        segments.SENTENCE_OBJECTIVES,
        "Meaning of next_sentence_labels in the records.",
    )


def _lengths(path: str) -> tuple[int, int]:
    """S and P of the first record of a file; raises UserError when columns are missing."""
    for serialized in tf.data.TFRecordDataset(path).take(1).as_numpy_iterator():
        try:
            tf.io.parse_single_example(serialized, {"input_ids": tf.io.VarLenFeature(tf.int64)})
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # Its message decodes bytes.
            raise UserError(
                f"{path} contains no tf.train.Examples with integer input_ids. Give TFRecord "
                "files that contain them."
            ) from None
        found = tf.train.Example.FromString(serialized).features.feature
        # Only the names are used here: S and P are not known yet.
        needed = {feature.name for feature in features.readable_schema("static", 1, 1)}
        if not needed <= set(found):
            raise UserError(
                f"{path} lacks the columns {', '.join(sorted(needed - set(found)))}; it has "
                f"{', '.join(sorted(found))}. Create it without --use_v2_feature_names."
            )
        length = len(found["input_ids"].int64_list.value)
        return length, len(found["masked_lm_positions"].int64_list.value)
    raise UserError(f"{path} holds no record; remove it.")


def _add_file(path: str, schema: features.Schema, statistics: RecordStatistics) -> dict[str, Any]:
    """Adds the records of a file to `statistics`; returns the file's entry in the manifest."""
    before = statistics.records["records"]
    vocab_size = len(statistics.label_counts)
    for serialized in tf.data.TFRecordDataset(path).batch(_BATCH):
        columns = {name: v.numpy() for name, v in features.parse(schema, serialized).items()}
        labels = columns["masked_lm_ids"][columns["masked_lm_weights"] > 0]
        top = max(int(columns["input_ids"].max()), int(labels.max(initial=0)))
        if top >= vocab_size:
            raise UserError(
                f"{path} holds the id {top}, but --vocab_file has {vocab_size} pieces: it is not "
                "the vocabulary that the records were made with."
            )
        statistics.add_records(static_counts(columns, vocab_size))
    return {
        "name": os.path.basename(path),
        "num_records": statistics.records["records"] - before,
        "bytes": storage.size(path),
        "sha256": atomic_files.file_sha256(path),
    }


@lock.locks("data")
def adopt_records(data: str, tokenizer: Tokenizer, sentence_objective: str = "sop") -> dict:
    """Writes a manifest for the TFRecord files in a folder (all files whose names contain "tf" and
    "record"), and returns it. `sentence_objective` is the meaning of their next_sentence_labels.

    A folder with a manifest or without such files, and files with other content, are a UserError.
    """
    if storage.exists(os.path.join(data, record_folder.MANIFEST)):
        raise UserError(
            f"--data={data} already has a {record_folder.MANIFEST}, so its records need not be "
            "adopted. Inspect them with python -m data_pipeline.inspect_records."
        )
    names = [name for name in storage.names_in(data) if "tf" in name and "record" in name]
    paths = [os.path.join(data, name) for name in names]
    paths = [path for path in paths if not storage.is_folder(path)]
    if not paths:
        raise UserError(f"{data} holds no file named like *.tfrecord or *.tf_record.")
    statistics = RecordStatistics(tokenizer.vocab_size)
    try:
        length, predictions = _lengths(paths[0])
        schema = features.readable_schema("static", length, predictions)
        files = [_add_file(path, schema, statistics) for path in paths]
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise UserError(
            f"The files in {data} should be uncompressed TFRecords of equal length: "
            f"{message_of(error)}."
        ) from error
    settings = PretrainingSettings(
        max_seq_length=length,
        max_predictions_per_seq=predictions,
        sentence_objective=sentence_objective,
        masking="static",
    )
    # The manifest is written last: it has the hashes of these files, and marks the folder as data.
    small_files = extra_files(tokenizer, statistics)
    for name, content in small_files.items():
        atomic_files.write_bytes(os.path.join(data, name), content)
    return record_folder.write_manifest(
        data,
        {
            **manifest_fields(files, settings, tokenizer),
            "settings": settings.to_manifest(),
            "corpus": {"problems": {}, "problem_examples": []},
            "statistics": statistics.summary(tokenizer.pieces),
        },
        small_files,
    )


def main() -> None:
    """Writes the manifest, then prints the numbers of the records and the next command."""
    tokenizer = load_tokenizer(FLAGS.vocab_file, **tokenizer_flags.by_hand())
    manifest = adopt_records(FLAGS.data, tokenizer, FLAGS.sentence_objective)
    print(f"{FLAGS.data}:\n{summary_table(manifest)}")
    print(f"Look:  python -m data_pipeline.inspect_records --data={shlex.quote(FLAGS.data)}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
