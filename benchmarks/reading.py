"""How fast records are read for training, beside what the training step of a small model consumes.

    python -m benchmarks.reading --text=corpus.txt --vocab_file=spiece.model

Reading and steps (forward, backward; albert-small) take turns in one process;
medians are compared. Both count real tokens, without padding.

A second table is about a resumed run: seconds to its first batch, when it seeks its place in the
epoch, and when it reads and drops the records before.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_tf import AlbertPretrainer, get_preset
from albert_tf.tasks import PretrainingTask, total_loss
from benchmarks.choice import chosen
from benchmarks.tables import print_rows, write_csv
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.dataset import SHUFFLE_WINDOW, pretraining_dataset
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import example_bytes
from data_pipeline.records.order import RecordOrder, batch_epochs
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
RESUMED_SHARDS, RESUMED_BYTES = 100, 500  # Files of 2,000 to 6,000 records; a record's size.
CASES = {f"{batch}x{length}": (batch, length) for batch, length in ((64, 64), (32, 128), (8, 512))}


def reader(data: str, batch: int) -> Callable[[], float]:
    """A function that reads FLAGS.batches batches of size `batch` and returns tokens a second."""
    batches = iter(pretraining_dataset(data, batch))

    def read() -> float:
        start, tokens = time.perf_counter(), 0
        for element in itertools.islice(batches, FLAGS.batches):
            tokens += int(tf.reduce_sum(element["input_mask"]))
        return tokens / (time.perf_counter() - start)

    read()
    return read


def stepper(data: str, batch: int, vocab_size: int) -> Callable[[], float]:
    """A function that takes a training step on one batch and returns tokens a second."""
    element = next(iter(pretraining_dataset(data, batch)))
    length = element["input_word_ids"].shape[1]
    config = get_preset("albert-small").replace(
        vocab_size=vocab_size, max_position_embeddings=length
    )
    model = AlbertPretrainer(config)
    task = PretrainingTask(model)
    tokens = int(tf.reduce_sum(element["input_mask"]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = total_loss(task, task.ratios(element, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        return tf.add_n([tf.reduce_sum(tf.convert_to_tensor(g)) for g in gradients])

    def run() -> float:
        start = time.perf_counter()
        step().numpy()
        return tokens / (time.perf_counter() - start)

    run()
    return run


def measure(tokenizer, folder: Path, batch: int, length: int) -> list[dict[str, object]]:
    """Rows of one length: static records, dynamic records, the training step."""
    data = {}
    for masking in ("static", "dynamic"):
        data[masking] = str(folder / f"{masking}-{length}")
        settings = PretrainingSettings(max_seq_length=length, dupe_factor=1, masking=masking)
        create_pretraining_data(Corpus(FLAGS.text), data[masking], tokenizer, settings)
    runs = {masking: reader(path, batch) for masking, path in data.items()}
    runs["training step"] = stepper(data["static"], batch, tokenizer.vocab_size)
    turns: dict[str, list[float]] = {}
    for _ in range(FLAGS.rounds):
        for name, run in runs.items():
            turns.setdefault(name, []).append(run())
    found = {name: statistics.median(values) for name, values in turns.items()}
    return [
        {
            "batch": f"{batch} x {length}",
            "what": name,
            "tokens/s": round(value),
            "times the step": round(value / found["training step"], 1),
        }
        for name, value in found.items()
    ]


def made_up_order(folder: Path) -> RecordOrder:
    """Several hundred thousand records of random bytes, in the order of training."""
    rng = np.random.default_rng(0)
    counts = rng.integers(2_000, 6_000, RESUMED_SHARDS).tolist()
    paths = [str(folder / f"{shard}.tfrecord") for shard in range(RESUMED_SHARDS)]
    for path, count in zip(paths, counts):
        content = b"".join(example_bytes.frame(rng.bytes(RESUMED_BYTES)) for _ in range(count))
        Path(path).write_bytes(content)
    return RecordOrder(paths, counts, SHUFFLE_WINDOW, seed=0)


def measure_resuming(folder: Path) -> list[dict[str, object]]:
    """Rows of seconds to the first batch, by the share of an epoch that lies before it."""
    order, batch = made_up_order(folder), 64
    ways = {"seek": order.rest_of_epoch, "read and drop": None}
    turns: dict[tuple[float, str], list[float]] = {}
    for _ in range(FLAGS.rounds):
        for share, way in itertools.product((0.0, 0.5, 0.9), ways):
            step = int(share * sum(order.counts)) // batch
            start = time.perf_counter()
            batches = batch_epochs(order.epoch, sum(order.counts), batch, step, ways[way])
            next(iter(batches))
            turns.setdefault((share, way), []).append(time.perf_counter() - start)
    return [
        {
            "records": sum(order.counts),
            "of the epoch before": f"{share:.0%}",
            "how": way,
            "seconds to the first batch": round(statistics.median(values), 2),
        }
        for (share, way), values in turns.items()
    ]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("text", None, "Text, one sentence per line.", required=True)
    flags.DEFINE_string("vocab_file", None, "SentencePiece model.", required=True)
    flags.DEFINE_string("output", "benchmark_out", "Folder for reading.csv and resuming.csv.")
    flags.DEFINE_string(
        "cases", "", "Pattern of the cases to measure, batch x length; all if empty."
    )
    flags.DEFINE_integer("rounds", 5, "How often each is run.", lower_bound=1)
    flags.DEFINE_integer(
        "batches", 500, "Batches read in a turn, many more than are read ahead.", lower_bound=1
    )


def main() -> None:
    tokenizer = load_tokenizer(FLAGS.vocab_file)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for batch, length in chosen("cases", FLAGS.cases, CASES).values():
            rows += measure(tokenizer, Path(folder), batch, length)
        resumed = measure_resuming(Path(folder))
    for name, table in (("reading", rows), ("resuming", resumed)):
        print_rows(table)
        write_csv(Path(FLAGS.output) / f"{name}.csv", table)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
