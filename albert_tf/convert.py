"""Converts a model between google-research/albert, Hugging Face and this project's own folders.

    python -m albert_tf.convert --input=albert_base/model.ckpt-best --output=base --format=native

The input's format is told by its files. The output is read back, and checked against its software.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import dataclasses
import os

import tensorflow as tf

from albert_tf.checkpoints import (
    formats,
    google,
    huggingface,
    native,
    sentence_transformers,
    target_tensors,
    vocabulary,
)
from albert_tf.checkpoints.huggingface_config import as_groups
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier
from albert_tf.pretrained import locate
from albert_tf.replaced_tokens import AlbertReplacedTokenDetector
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.conversion import write_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Input and output")
    flags.DEFINE_string(
        "input",
        None,
        "Model folder, Hugging Face folder, prefix of a google-research checkpoint, or preset.",
        required=True,
    )
    flags.DEFINE_string("output", None, "Folder to write; must not exist.", required=True)
    flags.DEFINE_enum("format", None, formats.FORMATS, "What to write.", required=True)
    flags.DEFINE_enum(
        "dtype",
        "float32",
        huggingface.DTYPES,
        "Precision of the weights in the file; float16 is for --format=huggingface only.",
    )
    flags.DEFINE_string("config_file", None, "Configuration, where none lies beside the input.")
    flags.DEFINE_string("vocab_file", None, "Vocabulary, where none lies beside the input.")
    tokenizer_flags.define_flags()
    flags.DEFINE_enum(
        "head", None, google.HEADS, "Kind of a google-research checkpoint's head, where unclear."
    )
    flags.DEFINE_bool(
        "use_averages", False, "Read the averages of a google-research checkpoint, not its weights."
    )


def main() -> None:
    if tf.io.gfile.exists(FLAGS.output):
        raise UserError(f"--output={FLAGS.output} exists. Name a new folder.")
    if FLAGS.dtype != "float32" and FLAGS.format != "huggingface":
        raise UserError(
            f"--dtype={FLAGS.dtype} is for --format=huggingface; --format={FLAGS.format} holds "
            "float32. Leave --dtype out."
        )
    source = locate(FLAGS.input)
    given = FLAGS.config_file
    config = AlbertConfig.from_json_file(given) if given else source.config()
    model = formats.make_model(source, config, FLAGS.head)
    new = formats.load_whole(model, source, FLAGS.use_averages)
    if FLAGS.format != "native" and isinstance(model, AlbertReplacedTokenDetector):
        print(f"{FLAGS.format} has no detector of replaced tokens: its encoder is written.")
        model = model.encoder
    vocab_file = FLAGS.vocab_file or source.vocab_file
    tokenizer = load_tokenizer(vocab_file, **tokenizer_flags.by_hand()) if vocab_file else None
    if tokenizer:
        vocabulary.check_size(tokenizer.vocab_file, tokenizer.vocab_size, config.vocab_size)
    temporary = f"{FLAGS.output.rstrip('/')}.partial"
    if tf.io.gfile.exists(temporary):
        tf.io.gfile.rmtree(temporary)
    try:
        write(model, temporary, source, tokenizer)
        checked = target_tensors.check(model, temporary, FLAGS.format, FLAGS.dtype)
        difference = formats.round_trip(model, temporary)
        tf.io.gfile.rename(temporary, FLAGS.output)
    finally:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
    print(f"Read {source.path} ({source.format}): {type(model).__name__}")
    print(f"Carried over: {len(model.variables) - len(new)} variables, {model.count_params():,} "
          f"parameters; vocabulary: {vocab_file or 'none'}")  # fmt: skip
    if steps := sentence_transformers.other_steps(source.path):
        print(f"Left out, so that vectors of sentences will be others: {', '.join(steps)}")
    if new:
        print(f"Not in the input, and random: {', '.join(new)}")
    print(f"Wrote {FLAGS.output} ({FLAGS.format}){checked}; read back, outputs differ by "
          f"{difference:.1e}")  # fmt: skip


def write(
    model: keras.Model, folder: str, source: formats.Source, tokenizer: Tokenizer | None
) -> None:
    """Writes a folder with weights, configuration and vocabulary in --format.

    Args:
      model: with the weights of the input.
      folder: to be made.
      source: the input, whose model.json is carried over if it has one.
      tokenizer: of the vocabulary, if there is one.
    """
    metadata = native.read_metadata(source.path) if source.format == "native" else {}
    names = formats.class_names(source) if hasattr(model, "num_classes") else []
    if FLAGS.format == "native":
        metadata.setdefault("max_seq_length", model.config.max_position_embeddings)
        if names and source.format != "native":  # [] says that the model's answer is a number.
            is_number = type(model) is AlbertClassifier and model.num_classes == 1
            metadata["labels"] = [] if is_number else names
        if tokenizer is None:
            return native.save(model, folder, metadata)
        metadata.setdefault("vocab_fingerprint", tokenizer.fingerprint)
        settings = dataclasses.asdict(tokenizer.settings)
        return native.save(model, folder, metadata, tokenizer.vocab_file, settings)
    tf.io.gfile.makedirs(folder)
    if FLAGS.format == "google":
        if names:
            print(f"google has no place for the names of the classes: {', '.join(names)}")
        google.save(model, os.path.join(folder, google.PREFIX))
        as_groups(model.config).to_json_file(os.path.join(folder, native.CONFIG_FILE))
    else:
        huggingface.save(model, folder, names, FLAGS.dtype)
    if tokenizer:
        positions = model.config.max_position_embeddings
        for line in write_tokenizer(tokenizer, folder, FLAGS.format, positions):
            print(line)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
