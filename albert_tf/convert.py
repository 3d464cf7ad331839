"""Converts a model between google-research, Hugging Face, KerasHub and this project's own folders.

    python -m albert_tf.convert --input=albert_base/model.ckpt-best --output=base --format=native

The format of --input is detected from its files. The output is read back, and checked against the
names and shapes that the other software expects.
"""

from __future__ import annotations

import dataclasses

from albert_tf.checkpoints import formats, google, huggingface, sentence_transformers, vocabulary
from albert_tf.checkpoints.huggingface import kind_to_write
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertReplacedTokenDetector, AlbertSpanPretrainer
from albert_tf.pretrained.loading import locate
from data_pipeline.command_line import flags, run_binary
from data_pipeline.files import atomic_folders, storage
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
        "Model folder, folder of Hugging Face or KerasHub, prefix of a google-research checkpoint, "
        "or preset.",
        required=True,
    )
    flags.DEFINE_string("output", None, "Folder to write, which must not exist yet.", required=True)
    flags.DEFINE_enum("format", None, list(formats.FORMATS), "Format to write.", required=True)
    flags.DEFINE_enum(
        "dtype",
        "float32",
        huggingface.DTYPES,
        "Precision of the weights in the file; float16 is for --format=huggingface only.",
    )
    flags.DEFINE_string("config_file", None, "Configuration, for an --input that has none.")
    flags.DEFINE_string("vocab_file", None, "Vocabulary, for an --input that has none.")
    tokenizer_flags.define_flags()
    about = "Kind of head of a google-research checkpoint, if its weights do not show it."
    flags.DEFINE_enum("head", None, google.HEADS, about)
    about = "Read a google-research checkpoint's moving averages instead of its weights."
    flags.DEFINE_bool("use_averages", False, about)


def main() -> None:
    if storage.exists(FLAGS.output):
        raise UserError(f"--output={FLAGS.output} exists. Name a new folder.")
    target = formats.FORMATS[FLAGS.format]
    if FLAGS.dtype not in target.dtypes:
        raise UserError(
            f"--dtype={FLAGS.dtype} is for --format=huggingface; --format={FLAGS.format} holds "
            "float32. Leave --dtype out."
        )
    source = with_google_flags(locate(FLAGS.input))
    given = FLAGS.config_file
    config = AlbertConfig.from_json_file(given) if given else source.config()
    model = source.make_model(config)
    new = formats.load_whole(model, source)
    is_detector = isinstance(model, AlbertReplacedTokenDetector)
    if not target.is_own and is_detector and kind_to_write(model) == "albert":
        print(f"{FLAGS.format} has no ALBERT for replaced tokens: only the encoder is written.")
        model = model.encoder
    if not target.is_own and isinstance(model, AlbertSpanPretrainer):
        print(f"{FLAGS.format} has no span pre-training: the span head is left out.")
        model = model.without_spans()
    vocab_file = FLAGS.vocab_file or source.vocab_file
    tokenizer = load_tokenizer(vocab_file, **tokenizer_flags.by_hand()) if vocab_file else None
    if tokenizer:
        vocabulary.check_size(tokenizer.vocab_file, tokenizer.vocab_size, config.vocab_size)
    with atomic_folders.replacing(FLAGS.output) as folder:
        write(model, folder, target, source, tokenizer)
        checked = target.check(model, folder, FLAGS.dtype)
        difference = formats.round_trip(model, folder)
    print(f"Read {source.path} ({source.format}): {type(model).__name__}")
    print(f"Carried over: {len(model.variables) - len(new)} variables, {model.count_params():,} "
          f"parameters; vocabulary: {vocab_file or 'none'}")  # fmt: skip
    pooling = sentence_transformers.read_pooling(source.path)
    steps = [] if pooling.mode == "mean" else [f"the {pooling.mode} token's"]
    steps += [*pooling.others, *(["Normalize"] if pooling.normalized else [])]
    if steps:
        print(f"Left out, so that sentence vectors will differ: {', '.join(steps)}")
    if new:
        print(f"Not in the input, initialized at random: {', '.join(new)}")
    print(f"Wrote {FLAGS.output} ({FLAGS.format}){checked}; read back, outputs differ by "
          f"{difference:.1e}")  # fmt: skip


def with_google_flags(source: formats.Source) -> formats.Source:
    """The input with the flags that apply only to google-research's checkpoints."""
    values = {name: FLAGS[name].value for name in ("head", "use_averages") if FLAGS[name].value}
    if not values or isinstance(source, formats.Google):
        return dataclasses.replace(source, **values)
    raise UserError(
        f"{' '.join(f'--{name}={value}' for name, value in values.items())}: only for "
        f"google-research checkpoints; {source.path} has the format {source.format}. Leave it out."
    )


def write(
    model: keras.Model,
    folder: str,
    target: type[formats.Source],
    source: formats.Source,
    tokenizer: Tokenizer | None,
) -> None:
    """Writes a new folder with weights, configuration and vocabulary; the input's model.json is
    carried over if it has one.
    """
    labels = (source.labels() or []) if hasattr(model, "num_classes") else []
    beside = formats.Beside(labels, source.metadata(), dtype=FLAGS.dtype)
    if tokenizer:
        beside = beside._replace(
            metadata={"vocab_fingerprint": tokenizer.fingerprint, **beside.metadata},
            vocab_file=tokenizer.vocab_file,
            tokenizer=dataclasses.asdict(tokenizer.settings),
        )
    for line in target.save(model, folder, beside):
        print(line)
    if tokenizer and not target.is_own:
        positions = model.config.max_position_embeddings
        for line in write_tokenizer(tokenizer, folder, target.format, positions):
            print(line)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
