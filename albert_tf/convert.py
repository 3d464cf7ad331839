"""Converts a model between google-research/albert, Hugging Face and this project's own folders.

    python -m albert_tf.convert --input=albert_base/model.ckpt-best --output=base --format=native

The format of the input is recognized by its files. The output is compared with the list of tensors
that the other software has for such a model, and read back.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import dataclasses
import os

import tensorflow as tf

from albert_tf.checkpoints import formats, google, huggingface, native, target_tensors, vocabulary
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.huggingface_config import as_groups
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier
from albert_tf.pretrained import locate
from albert_tf.replaced_tokens import AlbertReplacedTokenDetector
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
_GOOGLE_PREFIX = "model.ckpt"


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
        "Of the weights in the file; float16, half the size, for --format=huggingface only.",
    )
    flags.DEFINE_string("config_file", None, "Configuration, where none lies beside the input.")
    flags.DEFINE_string("vocab_file", None, "Vocabulary, where none lies beside the input.")


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
    model = formats.make_model(source, config)
    new = formats.load_weights(model, source.path, *formats.TOLERATED[source.format])
    if FLAGS.format != "native" and isinstance(model, AlbertReplacedTokenDetector):
        print(f"{FLAGS.format} has no detector of replaced tokens: its encoder is written.")
        model = model.encoder
    vocab_file = FLAGS.vocab_file or source.vocab_file
    if vocab_file:
        vocabulary.check_size(vocab_file, load_tokenizer(vocab_file).vocab_size, config.vocab_size)
    temporary = f"{FLAGS.output.rstrip('/')}.partial"
    if tf.io.gfile.exists(temporary):
        tf.io.gfile.rmtree(temporary)
    try:
        write(model, temporary, source, vocab_file)
        checked = check(model, temporary)
        difference = formats.round_trip(model, temporary)
        tf.io.gfile.rename(temporary, FLAGS.output)
    finally:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
    print(f"Read {source.path} ({source.format}): {type(model).__name__}")
    print(f"Carried over: {len(model.variables) - len(new)} variables, {model.count_params():,} "
          f"parameters; vocabulary: {vocab_file or 'none'}")  # fmt: skip
    if new:
        print(f"Not in the input, and random: {', '.join(new)}")
    print(f"Wrote {FLAGS.output} ({FLAGS.format}){checked}; read back, outputs differ by "
          f"{difference:.1e}")  # fmt: skip


def write(model: keras.Model, folder: str, source: formats.Source, vocab_file: str | None) -> None:
    """Writes a folder with weights, configuration and vocabulary in --format.

    Args:
      model: with the weights of the input.
      folder: to be made.
      source: the input, whose model.json is carried over if it has one.
      vocab_file: path of the vocabulary, if there is one.
    """
    metadata = native.read_metadata(source.path) if source.format == "native" else {}
    names = formats.class_names(source) if hasattr(model, "num_classes") else []
    if FLAGS.format == "native":
        tokenizer = load_tokenizer(vocab_file) if vocab_file else None
        settings = dataclasses.asdict(tokenizer.settings) if tokenizer else None
        metadata.setdefault("max_seq_length", model.config.max_position_embeddings)
        if names and source.format != "native":  # [] says that the model's answer is a number.
            is_number = type(model) is AlbertClassifier and model.num_classes == 1
            metadata["labels"] = [] if is_number else names
        if tokenizer:
            metadata.setdefault("vocab_fingerprint", tokenizer.fingerprint)
        native.save(model, folder, metadata, vocab_file, settings)
        return
    tf.io.gfile.makedirs(folder)
    if FLAGS.format == "google":
        if names:
            print(f"google has no place for the names of the classes: {', '.join(names)}")
        google.save(model, os.path.join(folder, _GOOGLE_PREFIX))
        as_groups(model.config).to_json_file(os.path.join(folder, native.CONFIG_FILE))
    else:
        huggingface.save(model, folder, names, FLAGS.dtype)
    if vocab_file:
        name = vocabulary.stored_name(vocab_file)
        if FLAGS.format == "google" and name == vocabulary.SENTENCEPIECE:
            name = google.VOCABULARY
        tf.io.gfile.copy(vocab_file, os.path.join(folder, name))


def check(model: keras.Model, folder: str) -> str:
    """Compares a written folder with the tensors that --format's software has for such a model.

    Returns a clause for the program's last line; empty for this project's own format.
    """
    if FLAGS.format == "google":
        count = target_tensors.check_google(
            os.path.join(folder, _GOOGLE_PREFIX),
            os.path.join(folder, native.CONFIG_FILE),
            type(model).__name__,
            getattr(model, "num_classes", 2),
        )
        return f", {count} tensors as google-research/albert has them"
    if FLAGS.format == "huggingface":
        count = target_tensors.check_huggingface(folder, FLAGS.dtype)
        return f", {count} tensors as transformers has them"
    return ""


if __name__ == "__main__":
    define_flags()
    run_binary(main)
