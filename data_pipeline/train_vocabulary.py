"""Trains a SentencePiece or WordPiece vocabulary from text.

python -m data_pipeline.train_vocabulary --input='corpus/*.txt' --output_dir=vocab
"""

from __future__ import annotations

import shlex
import signal

from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import define, read
from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining import settings_flags
from data_pipeline.tokenizers.base import RULES, TokenizerSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.vocabulary import TOKENIZERS, train_vocabulary

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string(
        "input", None, "Text files to read: globs, separated by commas.", required=True
    )
    flags.DEFINE_string(
        "output_dir", None, "Folder to write spiece.model or vocab.txt to.", required=True
    )
    define(Corpus, "Text", without=("deduplicate",))
    flags.group("Vocabulary")
    flags.DEFINE_enum(
        "tokenizer",
        "sentencepiece",
        TOKENIZERS,
        "Kind of vocabulary: WordPiece has a piece for each ideograph, as the Chinese models need.",
    )
    flags.DEFINE_integer(
        "vocab_size", 30_000, "Number of pieces, special ones included.", 16, 1_000_000
    )
    flags.DEFINE_bool("lower_case", True, "Lower-case the text, as the published models do.")
    flags.DEFINE_enum(
        "rules", "google", RULES, "Source of the rules for quotes and for pieces such as '2010,'."
    )
    flags.DEFINE_integer(
        "input_sentence_size",
        10_000_000,
        "Maximum number of sentences, drawn at random, for SentencePiece.",
        101,
    )
    flags.DEFINE_float(
        "character_coverage", 0.99995, "Share of the characters that get a piece.", 0.98, 1
    )
    flags.DEFINE_bool("overwrite", False, "Replace a vocabulary in --output_dir.")


def main() -> None:
    """Trains a vocabulary, then prints its size, a sample and the next command."""
    # SentencePiece's native code ignores Ctrl-C; nothing is written before it is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if FLAGS.tokenizer == "wordpiece" and FLAGS["input_sentence_size"].present:
        raise UserError(
            f"--input_sentence_size={FLAGS.input_sentence_size} is for --tokenizer=sentencepiece: "
            "WordPiece counts the words of all sentences. Leave it out."
        )
    path = train_vocabulary(
        read(Corpus, patterns=FLAGS.input),
        FLAGS.output_dir,
        FLAGS.vocab_size,
        settings=TokenizerSettings(FLAGS.lower_case, FLAGS.rules),
        tokenizer=FLAGS.tokenizer,
        input_sentence_size=FLAGS.input_sentence_size,
        character_coverage=FLAGS.character_coverage,
        overwrite=FLAGS.overwrite,
        show_progress=True,
    )
    tokenizer = load_tokenizer(path)
    sample = "The quick brown fox jumped over 1,234 dogs in 2010, didn't it?"
    print(f"Wrote {path}: {tokenizer.vocab_size} pieces, fingerprint {tokenizer.fingerprint[:12]}.")
    print(f"Sample: {' '.join(tokenizer.encode_pieces(sample))}")
    print(
        f"Next: python -m data_pipeline.create_pretraining_data --input={shlex.quote(FLAGS.input)} "
        f"--vocab_file={shlex.quote(path)}{settings_flags.reading_arguments()} --output_dir=DATA"
    )


if __name__ == "__main__":
    define_flags()
    run_binary(main)
