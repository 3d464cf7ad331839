"""Shows a folder of pre-training records: its manifest, measured distributions, some records.

python -m data_pipeline.inspect_records --data=data --num_records=2
"""

from __future__ import annotations

import os
import sys

from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.pretraining import display
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.statistics import summary_table, table
from data_pipeline.records import features, record_folder
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
_BATCH = 64


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Data")
    flags.DEFINE_string("data", None, "Folder of records.", required=True)
    flags.DEFINE_bool("verify", True, "Compare every file with the manifest first.")
    flags.group("Display")
    flags.DEFINE_integer("num_records", 3, "Number of records to show.")
    flags.DEFINE_integer("measure", 2000, "Number of records to measure distributions on.")
    flags.DEFINE_enum("color", "auto", ["auto", "always", "never"], "Mark masked pieces in color.")


def _wants_color() -> bool:
    if FLAGS.color == "auto":
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ  # See no-color.org.
    return FLAGS.color == "always"


def main() -> None:
    """Prints the manifest's numbers, the schema, distributions and the first records."""
    manifest = record_folder.verify_records(FLAGS.data, full=FLAGS.verify)
    print(f"{FLAGS.data}:\n{summary_table(manifest)}")
    print(f"\nColumns ({manifest['masking']} masking):")
    print(features.schema_text(features.schema_of(manifest)))
    vocab_file = os.path.join(manifest["directory"], manifest["vocab_file"])
    tokenizer = load_tokenizer(vocab_file, **manifest["tokenizer"])
    # The manifest may lack the file's hash: `sealed` allows users to delete it after a change.
    if tokenizer.fingerprint != manifest["vocab_fingerprint"]:
        raise UserError(f"{vocab_file} is not the vocabulary that the records were made with.")
    wanted = max(FLAGS.num_records, FLAGS.measure)
    dataset = pretraining_dataset(FLAGS.data, _BATCH, training=False, manifest=manifest)
    batches = list(dataset.take(-(-wanted // _BATCH)).as_numpy_iterator())
    if FLAGS.measure:
        measured = display.Distributions(tokenizer.mask_id)
        for batch in batches[: -(-FLAGS.measure // _BATCH)]:
            measured.add(batch)
        print(f"\nMeasured:\n{table(measured.rows())}")
    color = _wants_color()
    shown = min(FLAGS.num_records, manifest["num_records"])
    if shown:
        print(f"\n{display.legend(color)}")
    for number in range(shown):
        batch = batches[number // _BATCH]
        text = display.format_record(batch, number % _BATCH, tokenizer, color)
        print(f"\nRecord {number + 1}: {text}")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
