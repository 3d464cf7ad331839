r"""Stores the training examples of a task as TFRecords, for run_finetuning --train_records.

    python -m albert_tf.create_finetuning_data --task=mnli --data_dir=glue \
        --vocab_file=spiece.model --max_seq_length=512 --output_dir=records/mnli
"""

from __future__ import annotations

import shlex

from albert_tf.finetuning import flags as finetuning_flags
from albert_tf.finetuning.training_examples import write_training_records
from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import read
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
# Flags that the printed next command leaves out: it trains on the records and has its own folder.
_NOT_REPEATED = ("--train_file", "--output_dir", "--overwrite")


def define_flags() -> None:
    """Flags of this program."""
    finetuning_flags.define_task_flags(needs_vocabulary=True)
    flags.group("Output")
    flags.DEFINE_string("output_dir", None, "Folder to write records to.", required=True)
    flags.DEFINE_bool("overwrite", False, "Replace finished data in --output_dir.")


def main() -> None:
    """Writes the records, then prints how many there are, and the next command."""
    manifest, was_there = write_training_records(
        finetuning_flags.task(),
        finetuning_flags.task_data(),
        load_tokenizer(FLAGS.vocab_file, **tokenizer_flags.by_hand()),
        read(LengthSettings),
        FLAGS.output_dir,
        FLAGS.overwrite,
    )
    num_bytes = sum(entry["bytes"] for entry in manifest["files"])
    print(
        f"{'Made before:' if was_there else 'Wrote'} {FLAGS.output_dir}, "
        f"{manifest['num_records']} records of {manifest['num_examples']} examples, "
        f"{num_bytes / 1e6:.1f} MB"
    )
    given = [flag.serialize() for flag in flags.defined() if flag.present]
    repeated = [text for text in given if not text.startswith(_NOT_REPEATED)]
    repeated.append(f"--train_records={FLAGS.output_dir}")
    dev_file = "--dev_file=... " if FLAGS.train_file else ""
    print(
        f"Next: python -m albert_tf.run_finetuning {shlex.join(repeated)} {dev_file}"
        "--init_checkpoint=... --output_dir=..."
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
