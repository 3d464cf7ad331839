"""Training of ALBERT base: gradient only, LAMB only, both, the whole loop, recomputed activations.

    python -m benchmarks.training --text=corpus.txt --vocab_file=spiece.model

Every kind is a separate process, and they take turns, so that other load on the machine affects all
equally; medians are compared. Two processes of one program can differ by more than the cost of the
loop: --starts=3 repeats every case with three processes. The records are created from the text. To
compare the gradient with other libraries, see benchmarks.encoder --passes=training.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from benchmarks.processes import Measurement, Worker, medians, turns_of
from benchmarks.tables import chosen, print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
CASES = {"8x128": (8, 128), "4x512": (4, 512)}  # Batch, length.
BATCHES = 105  # All kinds except the loop cycle through these.
KINDS = {
    "gradient": "gradient alone",
    "recompute": "gradient, recompute=True",
    "lamb": "LAMB alone",
    "update": "gradient and LAMB",
    "loop": "whole loop",
}
WORKERS = [Worker(name, ("ours_training.py", kind), "", "ours") for kind, name in KINDS.items()]


def rows_of(case: str, precision: str, measured: dict[str, Measurement]) -> list[dict[str, object]]:
    """A row for each kind, with ratios to the gradient alone and to the update."""
    gradient, update = measured[KINDS["gradient"]], measured[KINDS["update"]]
    return [
        {
            "case": case,
            "precision": precision,
            "what": name,
            "ms per step": round(1e3 * found.seconds),
            "of gradient alone": round(found.seconds / gradient.seconds, 3),
            "of gradient and LAMB": round(found.seconds / update.seconds, 3),
            "peak MiB": found.peak_bytes >> 20,
            "peak of gradient alone": round(found.peak_bytes / gradient.peak_bytes, 2),
        }
        for name, found in measured.items()
    ]


def _keep_batches(data: str, batch_size: int, path: str) -> None:
    """Writes the first batches of records, with each feature stacked, as an npz file."""
    batches = pretraining_dataset(data, batch_size).take(BATCHES).as_numpy_iterator()
    np.savez(path, **tf.nest.map_structure(lambda *each: np.stack(each), *batches))


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("text", None, "Text, one sentence per line.", required=True)
    flags.DEFINE_string("vocab_file", None, "SentencePiece model.", required=True)
    flags.DEFINE_string("preset", "albert-base-v2", "Architecture.")
    flags.DEFINE_string("output", "benchmark_out", "Folder for training.csv and workers.log.")
    flags.DEFINE_string("cases", "", "Run the cases whose name matches this pattern.")
    flags.DEFINE_list("precisions", ["float32", "bfloat16"], "Precisions to measure in.")
    flags.DEFINE_integer("starts", 1, "Times each case is run with new processes.", 1, 100)


def main() -> None:
    cases = chosen("cases", FLAGS.cases, CASES)
    output = Path(FLAGS.output)
    tokenizer = load_tokenizer(FLAGS.vocab_file)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (batch_size, length) in cases.items():
            data = str(Path(folder) / str(length))
            settings = PretrainingSettings(
                max_seq_length=length, dupe_factor=1, masking="dynamic", short_seq_prob=0.0
            )
            create_pretraining_data(Corpus(FLAGS.text), data, tokenizer, settings)
            batches = f"{data}.npz"
            _keep_batches(data, batch_size, batches)
            for precision in FLAGS.precisions:
                case = {
                    "preset": FLAGS.preset,
                    "data": data,
                    "batches": batches,
                    "batch_size": batch_size,
                    "precision": precision,
                }
                turns = turns_of(
                    WORKERS,
                    lambda _, case=case: case,
                    peers="",
                    log=output / "workers.log",
                    starts=FLAGS.starts,
                )
                rows += rows_of(name, precision, medians(turns))
                print_rows(rows[-len(turns) :])
    write_csv(output / "training.csv", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
