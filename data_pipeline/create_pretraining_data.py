r"""Makes pre-training records (masked words, sentence order) from text.

    python -m data_pipeline.create_pretraining_data --input='corpus/*.txt' \
        --vocab_file=vocab/spiece.model --output_dir=data --max_seq_length=128
"""

from __future__ import annotations

import shlex
import sys
from typing import Any

from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import read
from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError, needs_extra
from data_pipeline.pretraining import settings_flags
from data_pipeline.pretraining.creation import create_pretraining_data, make_plan
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import summary_table, unknown_warning
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string(
        "input", None, "Text files to read: globs, separated by commas.", required=True
    )
    flags.DEFINE_string("output_dir", None, "Folder to write records to.", required=True)
    flags.DEFINE_string(
        "vocab_file",
        None,
        "Vocabulary: a SentencePiece model, or a WordPiece vocabulary ending in .txt.",
        required=True,
    )
    settings_flags.define_flags(without=["mask_schedule"])
    flags.group("Work")
    flags.DEFINE_float(
        "shard_mb",
        0,
        "Megabytes of text per record file and copy; 0: 1/32 of the corpus, between 1 and 32.",
        upper_bound=1024,
        expert=True,
    )
    flags.DEFINE_integer(
        "num_processes",
        0,
        "Number of processes; it does not affect the records. 0: one per processor.",
        upper_bound=1024,
    )
    flags.DEFINE_enum(
        "fast",
        "on",
        ["on", "off"],
        "Tokenize each word of the corpus once (on) or every sentence as a whole (off); the "
        "records are the same.",
        expert=True,
    )
    flags.DEFINE_string(
        "runner",
        "",
        "Run as an Apache Beam pipeline: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner.",
    )
    flags.DEFINE_multi_string(
        "pipeline_option",
        [],
        "Option for Apache Beam, as in --pipeline_option=--region=europe-west4.",
        expert=True,
    )
    flags.DEFINE_bool("overwrite", False, "Replace finished data in --output_dir.")


def _create_with_beam(
    corpus: Corpus, tokenizer: Tokenizer, settings: PretrainingSettings
) -> dict[str, Any]:
    """Makes the records in an Apache Beam pipeline; returns their manifest."""
    with needs_extra("beam", f"--runner={FLAGS.runner}"):
        from data_pipeline.pretraining import beam
    return beam.create_pretraining_data(
        make_plan(
            corpus, FLAGS.output_dir, tokenizer, settings, FLAGS.shard_mb, FLAGS.fast == "on"
        ),
        FLAGS.output_dir,
        options=[f"--runner={FLAGS.runner}", *FLAGS.pipeline_option],
        overwrite=FLAGS.overwrite,
    )


def _check_runner() -> None:
    """Raises UserError for flags that would have no effect, with or without Beam."""
    if FLAGS.pipeline_option and not FLAGS.runner:
        raise UserError(
            f"--pipeline_option={FLAGS.pipeline_option[0]} is for Apache Beam, which runs only "
            "with --runner. Add --runner, or leave it out."
        )
    # Also if the given value is the default: the user should know that the flag has no effect.
    if FLAGS.runner and FLAGS["num_processes"].present:
        raise UserError(
            f"--num_processes has no effect with --runner={FLAGS.runner}. Leave it out; give "
            "the runner's own options as --pipeline_option."
        )


def main() -> None:
    """Makes the records, then prints their numbers, warnings and the next command."""
    _check_runner()
    tokenizer = load_tokenizer(FLAGS.vocab_file, **tokenizer_flags.by_hand())
    corpus = read(Corpus, patterns=FLAGS.input)
    settings = read(PretrainingSettings)
    if FLAGS.runner:
        manifest = _create_with_beam(corpus, tokenizer, settings)
    else:
        manifest = create_pretraining_data(
            corpus,
            FLAGS.output_dir,
            tokenizer,
            settings,
            num_processes=FLAGS.num_processes,
            shard_mb=FLAGS.shard_mb,
            fast=FLAGS.fast == "on",
            overwrite=FLAGS.overwrite,
            show_progress=True,
        )
    print(f"Wrote {FLAGS.output_dir}:\n{summary_table(manifest)}")
    for example in manifest["corpus"]["problem_examples"]:
        print(f"warning: {example}", file=sys.stderr)
    if message := unknown_warning(manifest["corpus"]["unknown_share"]):
        print(f"warning: {message}", file=sys.stderr)
    print(f"Look:  python -m data_pipeline.inspect_records --data={shlex.quote(FLAGS.output_dir)}")
    # Model, batch size and steps suit one machine without a GPU; docs/training.md has the paper's.
    print(
        f"Next:  python -m albert_tf.run_pretraining --preset=albert-small "
        f"--train_data={shlex.quote(FLAGS.output_dir)} --output_dir=RUN --train_batch_size=64 "
        "--learning_rate=0.004 --num_train_steps=20000 --num_warmup_steps=1000"
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
