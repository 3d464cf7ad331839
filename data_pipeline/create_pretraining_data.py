r"""Makes pre-training records (masked words, sentence order) from text.

    python -m data_pipeline.create_pretraining_data --input='corpus/*.txt' \
        --vocab_file=vocab/spiece.model --output_dir=data --max_seq_length=128
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import sys
from typing import Any

from data_pipeline import features, segments, text_blocks
from data_pipeline.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining_data import UNKNOWN_WARNING, create_pretraining_data, make_plan
from data_pipeline.pretraining_settings import PretrainingSettings
from data_pipeline.record_statistics import summary_table
from data_pipeline.tokenization import Tokenizer, load_tokenizer

FLAGS = flags.FLAGS
_DEFAULTS = PretrainingSettings()


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string("input", None, "Text files: globs, separated by commas.", required=True)
    flags.DEFINE_string("output_dir", None, "Folder to write records to.", required=True)
    flags.DEFINE_string(
        "vocab_file",
        None,
        "Vocabulary: a SentencePiece model, or a WordPiece vocabulary ending in .txt.",
        required=True,
    )
    flags.DEFINE_bool(
        "lower_case",
        None,
        "Lower-case the text; default: tokenizer_settings.json of the vocabulary, or true.",
    )
    flags.DEFINE_enum(
        "input_format", "auto", text_blocks.INPUT_FORMATS, "See data_pipeline/documents.py."
    )
    flags.DEFINE_string("text_field", "text", "Field of jsonl that holds the text.")
    flags.DEFINE_string("language", "en", "Language of the text, for splitting sentences.")
    flags.group("Records")
    flags.DEFINE_integer(
        "max_seq_length",
        _DEFAULTS.max_seq_length,
        "Tokens per record, special pieces included.",
        lower_bound=8,
        upper_bound=65536,
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        0,
        "Masked tokens per record; 0: masked_lm_prob * max_seq_length.",
        upper_bound=65536,
    )
    flags.DEFINE_float(
        "masked_lm_prob", _DEFAULTS.masked_lm_prob, "Share of tokens to predict.", above=0, below=1
    )
    flags.DEFINE_integer("ngram", _DEFAULTS.ngram, "Longest masked n-gram, in words.", 1, 100)
    flags.DEFINE_bool(
        "favor_shorter_ngram",
        True,
        "P(n) is proportional to 1/n; false reverses the probabilities.",
    )
    flags.DEFINE_float(
        "short_seq_prob",
        _DEFAULTS.short_seq_prob,
        "Share of documents cut into shorter records.",
        upper_bound=1,
    )
    flags.DEFINE_integer(
        "dupe_factor",
        _DEFAULTS.dupe_factor,
        "Copies of the text, each with other masks.",
        lower_bound=1,
        upper_bound=1000,
    )
    flags.DEFINE_enum(
        "sentence_objective",
        _DEFAULTS.sentence_objective,
        segments.OBJECTIVES,
        "Sentence order, next sentence, or no pairs at all.",
    )
    flags.DEFINE_enum(
        "masking",
        _DEFAULTS.masking,
        features.MASKINGS,
        "static: masks are written into the records; dynamic: they are drawn when training reads.",
    )
    flags.DEFINE_bool(
        "mask_by_span",
        _DEFAULTS.mask_by_span,
        "Choose [MASK], the same or a random piece once per n-gram instead of per piece.",
    )
    flags.DEFINE_integer("seed", _DEFAULTS.seed, "Decides every random choice.")
    flags.group("Work")
    flags.DEFINE_bool("deduplicate", False, "Drop documents that occurred before.")
    flags.DEFINE_float(
        "shard_mb",
        0,
        "Megabytes of text per file of records and copy; 0: a 32nd of the corpus, from 1 to 32.",
        upper_bound=1024,
    )
    flags.DEFINE_integer(
        "num_processes",
        0,
        "Processes that make records, 0: one per processor; the records do not depend on it.",
        upper_bound=1024,
    )
    flags.DEFINE_string(
        "runner",
        "",
        "Run as an Apache Beam pipeline: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner.",
    )
    flags.DEFINE_multi_string(
        "pipeline_option", [], "An option for Beam, as in --pipeline_option=--region=europe-west4."
    )
    flags.DEFINE_bool("overwrite", False, "Replace finished data in --output_dir.")


def settings_from_flags() -> PretrainingSettings:
    """The flags as a checked dataclass."""
    return PretrainingSettings(
        max_seq_length=FLAGS.max_seq_length,
        max_predictions_per_seq=FLAGS.max_predictions_per_seq,
        masked_lm_prob=FLAGS.masked_lm_prob,
        ngram=FLAGS.ngram,
        favor_shorter_ngram=FLAGS.favor_shorter_ngram,
        short_seq_prob=FLAGS.short_seq_prob,
        dupe_factor=FLAGS.dupe_factor,
        sentence_objective=FLAGS.sentence_objective,
        masking=FLAGS.masking,
        mask_by_span=FLAGS.mask_by_span,
        seed=FLAGS.seed,
    )


def _create_with_beam(
    corpus: Corpus, tokenizer: Tokenizer, settings: PretrainingSettings
) -> dict[str, Any]:
    try:
        from data_pipeline import beam_pipeline
    except ImportError as error:
        raise UserError(
            f"--runner={FLAGS.runner} needs Apache Beam, which is not installed ({error}): "
            "pip install -r requirements-beam.txt"
        ) from None
    return beam_pipeline.create_pretraining_data(
        make_plan(corpus, FLAGS.output_dir, tokenizer, settings, FLAGS.shard_mb),
        FLAGS.output_dir,
        options=[f"--runner={FLAGS.runner}", *FLAGS.pipeline_option],
        overwrite=FLAGS.overwrite,
    )


def main() -> None:
    """Makes the records, then says what came out and what to do next."""
    tokenizer = load_tokenizer(FLAGS.vocab_file, FLAGS.lower_case)
    corpus = Corpus(
        FLAGS.input, FLAGS.input_format, FLAGS.text_field, FLAGS.language, FLAGS.deduplicate
    )
    settings = settings_from_flags()
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
            overwrite=FLAGS.overwrite,
            show_progress=True,
        )
    print(f"Wrote {FLAGS.output_dir}:\n{summary_table(manifest)}")
    for example in manifest["corpus"]["problem_examples"]:
        print(f"warning: {example}", file=sys.stderr)
    if manifest["corpus"]["unknown_share"] > UNKNOWN_WARNING:
        print(
            f"warning: {manifest['corpus']['unknown_share']:.1%} of the tokens are <unk>: the "
            "vocabulary does not suit this text (other language, or upper case kept?).",
            file=sys.stderr,
        )
    print(f"Look:  python -m data_pipeline.inspect_records --data={FLAGS.output_dir}")
    print(
        "Next:  python -m albert_tf.run_pretraining --preset=albert-base-v2 "
        f"--train_data={FLAGS.output_dir} --output_dir=RUN"
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
