"""Size, score and speed of a fine-tuned model in every precision, as a SavedModel and for LiteRT.

    python -m benchmarks.precision --model_dir=runs/sst-2/model --eval_file=glue --task=classifier

Scores are those of the signature `tokens` on all labeled examples. Times are medians of CPU seconds
on one thread. The forms take turns in this process, so that other load affects all equally.
"""

from __future__ import annotations

import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.tables import print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from export import litert
from export.comparison import Comparison, EvalSettings, shown
from export.precision import PRECISIONS
from export.tasks import TASKS, export_model

FLAGS = flags.FLAGS
SHAPES = ((1, 32), (8, 64))  # Rows, and tokens per row.

Call = Callable[..., Mapping[str, tf.Tensor]]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("model_dir", None, "Model folder of run_finetuning.", required=True)
    flags.DEFINE_string("eval_file", None, "Labeled examples, see run_export.", required=True)
    scored = [name for name, task in TASKS.items() if task.is_scored]
    flags.DEFINE_enum("task", "classifier", scored, "Kind of export to measure.")
    flags.DEFINE_integer("calls", 20, "Number of timed calls of each precision.", 1)
    flags.DEFINE_string("output", None, "Folder for precision.csv; by default only printed.")


def row(form: str, size: int, compared: Comparison) -> dict[str, object]:
    """A row of the table without times."""
    accuracy = compared.accuracy
    assert accuracy
    largest = max(compared.differences.values(), default=0.0)
    return {
        "form": form,
        "precision": compared.precision,
        "MB": f"{size / 1e6:.2f}",
        "of float32": f"{size / compared.float32_bytes:.2f}",
        "difference": f"{largest:.1e}",
        accuracy.metric: shown(accuracy.exported),
        "examples": accuracy.examples,
    }


def export_all(folder: str) -> tuple[list[dict[str, object]], list[Call]]:
    """A row for each form and precision, and the function to time."""
    rows, calls = [], []
    scored_on = EvalSettings(FLAGS.eval_file)
    for precision in PRECISIONS:
        path = os.path.join(folder, precision)
        saved = export_model(
            FLAGS.model_dir, path, FLAGS.task, precision=precision, scored_on=scored_on
        )
        rows.append(row("SavedModel", saved.weights_bytes, saved.comparison))
        calls.append(functools.partial(_call_tokens, tf.saved_model.load(saved.path)))
    for precision in litert.PRECISIONS:
        path = os.path.join(folder, f"litert_{precision}")
        lite = litert.export_litert(
            FLAGS.model_dir, path, FLAGS.task, precision, scored_on=scored_on
        )
        rows.append(row("LiteRT", lite.model_bytes, lite.comparison))
        calls.append(litert.Runner(Path(path, litert.MODEL_FILE).read_bytes()))
    return rows, calls


def _call_tokens(model: Any, **inputs: tf.Tensor) -> Mapping[str, tf.Tensor]:
    """The answer of a loaded model, whose variables live only as long as it is referenced."""
    return model.signatures["tokens"](**inputs)


def add_times(rows: list[dict[str, object]], calls: list[Call], count: int) -> None:
    """Adds the milliseconds of a call to each row, for each of SHAPES."""
    for shape in SHAPES:
        ones = tf.ones(shape, tf.int32)
        inputs = {"input_word_ids": ones, "input_mask": ones, "input_type_ids": 0 * ones}
        times: list[list[float]] = [[] for _ in calls]
        for _ in range(count + 1):
            for call, found in zip(calls, times):
                start = time.process_time()
                call(**inputs)
                found.append(time.process_time() - start)
        for each, found in zip(rows, times):
            each["ms, {} x {}".format(*shape)] = f"{statistics.median(found[1:]) * 1e3:.1f}"


def main() -> None:
    """Prints the table, and writes it to --output if that is given."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rows, calls = export_all(folder)
        add_times(rows, calls, FLAGS.calls)
    print_rows(rows)
    if FLAGS.output:
        write_csv(Path(FLAGS.output) / "precision.csv", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
