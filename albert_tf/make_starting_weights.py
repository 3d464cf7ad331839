r"""Makes starting weights for pre-training: word vectors from neighbors, heads that attend to them.

    python -m albert_tf.make_starting_weights --preset=albert-base-v2 --train_data=records/train \
        --output_dir=start

`run_pretraining --init_checkpoint=start` then gets past the loss plateau of plain word frequencies
within hundreds of updates instead of thousands (docs/training.md, "The plateau").
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from tqdm import tqdm

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining import PretrainingData, open_records, original_words
from albert_tf.starting_weights import count_words, set_informed_weights
from albert_tf.training import InitialModel
from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import define, read
from data_pipeline.files import storage
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
_BATCH_SIZE = 64


def define_flags() -> None:
    """Flags of this program."""
    define(InitialModel, "Model", without=("init_checkpoint", "recompute", "repeat_positions"))
    flags.group("Input and output")
    flags.DEFINE_string("train_data", None, "Folder of training records.", required=True)
    flags.DEFINE_string("output_dir", None, "Model folder to write.", required=True)
    flags.DEFINE_bool("overwrite", False, "Replace a model in --output_dir.")
    flags.group("Statistics")
    flags.DEFINE_integer(
        "num_tokens", 10_000_000, "Number of tokens to count, padding included.", lower_bound=1
    )
    flags.DEFINE_integer(
        "seed", 0, "Seed of the random weights and of the choice of records to count."
    )


def main() -> None:
    """Counts words, sets the weights, writes the model folder, and prints the next command."""
    if storage.exists(FLAGS.output_dir) and not FLAGS.overwrite:
        raise UserError(
            f"--output_dir={FLAGS.output_dir} exists. Name a new folder, or pass --overwrite."
        )
    there = os.path.join(FLAGS.output_dir, native.METADATA_FILE)
    if storage.names_in(FLAGS.output_dir) and not storage.exists(there):
        raise UserError(
            f"--output_dir={FLAGS.output_dir} is not a model folder, so it is not replaced. Name "
            "another folder."
        )
    data = open_records(FLAGS.train_data, _BATCH_SIZE, FLAGS.seed)
    start = read(InitialModel)
    config = start.config(data.vocab_size, data.max_seq_length, data.name)

    keras.utils.set_random_seed(FLAGS.seed)
    model = AlbertPretrainer(config)
    special = load_tokenizer(data.vocab_file, **data.manifest["tokenizer"]).special_ids
    statistics = count_words(words_of(data), config.vocab_size, special)
    set_informed_weights(model, statistics, FLAGS.seed)
    names = ("max_seq_length", "vocab_fingerprint")
    metadata = {name: data.manifest[name] for name in names}
    native.save(model, FLAGS.output_dir, metadata, data.vocab_file, data.manifest["tokenizer"])
    print(f"Wrote {FLAGS.output_dir}: {np.count_nonzero(statistics.frequencies):,} words counted.")
    print(
        f"Next: python -m albert_tf.run_pretraining --init_checkpoint={FLAGS.output_dir} "
        f"--train_data={FLAGS.train_data} --output_dir=RUN"
    )


def words_of(data: PretrainingData) -> Iterator[np.ndarray]:
    """Word ids of the first --num_tokens tokens, as int arrays [B, S]; reads the records once."""
    wanted = min(FLAGS.num_tokens, data.manifest["num_records"] * data.max_seq_length)
    with tqdm(total=wanted, desc="words", unit=" tokens", unit_scale=True) as progress:
        for batch in data.batches():
            yield (words := original_words(batch))
            progress.update(min(words.size, wanted - progress.n))
            if progress.n >= wanted:
                return


if __name__ == "__main__":
    define_flags()
    run_binary(main)
