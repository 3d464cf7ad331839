"""How fast records are read for training, beside what the fastest training step here consumes.

    python benchmarks/reading.py --text=corpus.txt --vocab_file=spiece.model

Reading and steps (forward, backward; albert-small, the smallest preset) take turns in one process;
medians are compared. Both count real tokens, without padding.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from data_pipeline.command_line import flags, run_binary  # noqa: E402, I001  Quiet TensorFlow.
from albert_tf import AlbertPretrainer, get_preset  # noqa: E402  Chooses Keras first.
from albert_tf.tasks import PretrainingTask, total_loss  # noqa: E402
from benchmarks.tables import print_rows, write_csv  # noqa: E402
from data_pipeline.datasets import pretraining_dataset  # noqa: E402
from data_pipeline.documents import Corpus  # noqa: E402
from data_pipeline.pretraining_data import create_pretraining_data  # noqa: E402
from data_pipeline.pretraining_settings import PretrainingSettings  # noqa: E402
from data_pipeline.tokenization import load_tokenizer  # noqa: E402

import tensorflow as tf  # noqa: E402

FLAGS = flags.FLAGS
CASES = ((64, 64), (32, 128), (8, 512))  # Batch, length.


def reader(data: str, batch: int) -> Callable[[], float]:
    """Reads some batches; tokens per second."""
    batches = iter(pretraining_dataset(data, batch))

    def read() -> float:
        start, tokens = time.perf_counter(), 0
        for element in itertools.islice(batches, FLAGS.batches):
            tokens += int(tf.reduce_sum(element["input_mask"]))
        return tokens / (time.perf_counter() - start)

    read()
    return read


def stepper(data: str, batch: int, vocab_size: int) -> Callable[[], float]:
    """Takes a training step on one batch; tokens per second."""
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
    """Static and dynamic records of one length."""
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


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("text", None, "Text, one sentence per line.", required=True)
    flags.DEFINE_string("vocab_file", None, "SentencePiece model.", required=True)
    flags.DEFINE_string("output", "benchmark_out", "Folder for reading.csv.")
    flags.DEFINE_integer("rounds", 5, "How often each is run.", lower_bound=1)
    flags.DEFINE_integer(
        "batches", 500, "Batches read in a turn, many more than are read ahead.", lower_bound=1
    )


def main() -> None:
    tokenizer = load_tokenizer(FLAGS.vocab_file)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for batch, length in CASES:
            rows += measure(tokenizer, Path(folder), batch, length)
    print_rows(rows)
    write_csv(Path(FLAGS.output) / "reading.csv", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
