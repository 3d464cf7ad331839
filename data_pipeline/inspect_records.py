"""Shows what a folder of pre-training records holds: its manifest, and records as text.

Example: python -m data_pipeline.inspect_records --data=data --num_records=2
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from absl import flags

from data_pipeline import features, records
from data_pipeline.errors import UserError, run_binary
from data_pipeline.record_statistics import summary_table
from data_pipeline.tokenization import Tokenizer, load_tokenizer

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.DEFINE_string("data", None, "Folder of records.", required=True)
    flags.DEFINE_integer("num_records", 3, "How many records to show.", lower_bound=0)
    flags.DEFINE_bool("verify", True, "Compare every file with the manifest first.")


def format_record(columns: Mapping[str, np.ndarray], tokenizer: Tokenizer) -> str:
    """One record as text: segments with masks, and what is to be predicted where.

    A masked position is written `input<label>`.
    """
    length = int(columns["input_mask"].sum())
    pieces = tokenizer.ids_to_pieces(columns["input_ids"][:length])
    count = int(columns["masked_lm_weights"].sum())
    positions, labels = columns["masked_lm_positions"][:count], columns["masked_lm_ids"][:count]
    for position, label in zip(positions, tokenizer.ids_to_pieces(labels)):
        pieces[position] += f"<{label}>"
    border = int(np.argmax(columns["segment_ids"])) if columns["segment_ids"].any() else length
    order = "swapped (or random B)" if columns["next_sentence_labels"][0] else "in order"
    return (
        f"{length} tokens, {count} masked, {order}\n"
        f"  A: {' '.join(pieces[:border])}\n  B: {' '.join(pieces[border:]) or '-'}"
    )


def main() -> None:
    """Prints the manifest's numbers, the schema and the first records."""
    manifest = records.verify_records(FLAGS.data, full=FLAGS.verify)
    schema = features.pretraining_schema(manifest["max_seq_length"], manifest["max_predictions"])
    print(f"{FLAGS.data}:\n{summary_table(manifest)}\n\nColumns:\n{features.describe(schema)}")
    vocab_file = os.path.join(manifest["directory"], manifest["vocab_file"])
    tokenizer = load_tokenizer(vocab_file, **manifest["tokenizer"])
    if tokenizer.fingerprint != manifest["vocab_fingerprint"]:
        raise UserError(f"{vocab_file} is not the vocabulary that the records were made with.")
    dataset = tf.data.TFRecordDataset(records.record_files(FLAGS.data)).take(FLAGS.num_records)
    for number, serialized in enumerate(dataset, start=1):
        columns = {k: v.numpy() for k, v in features.parse(schema, serialized).items()}
        print(f"\nRecord {number}: {format_record(columns, tokenizer)}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
