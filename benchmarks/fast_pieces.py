"""Measures the gain of each piece of albert_tf/layers/fast: the encoder with and without it.

    python -m benchmarks.fast_pieces --output=docs/benchmarks

Measured as in benchmarks.encoder: one process for each piece that is left out takes turns with one
that has all pieces. A ratio above 1 means that the piece saves time, or memory. A piece that is
left out is replaced by its plain form; "all of them" is --fast=off.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from benchmarks.encoder_cases import CASES as ENCODER_CASES
from benchmarks.left_out import PIECES
from benchmarks.processes import PEERS, Measurement, Worker, medians, turns_of
from benchmarks.tables import chosen, print_rows, write_csv
from data_pipeline.command_line import flags, run_binary

FLAGS = flags.FLAGS
# Pass, case of benchmarks.encoder, precision.
CASES = {
    f"{which} {case}, {precision}": (which, case, precision)
    for which, case, precision in (
        ("training", "8x128", "bfloat16"),
        ("training", "8x128", "float32"),
        ("training", "4x512", "bfloat16"),
        ("training", "64 SST-2-like", "float32"),
        ("forward", "8x128", "bfloat16"),
        ("forward", "64 SST-2-like", "float32"),
    )
}
NOW = Worker("now", ("ours_without.py", "packed", "nothing"), "", "ours")
# Pieces for forward passes; training uses all others, and "all of them".
_FORWARD = ("streams", "weights read once", "all of them")


def rows_of(case: str, measured: dict[str, Measurement]) -> list[dict[str, object]]:
    """A row for each piece that was left out, compared with the complete encoder."""
    now = measured[NOW.name]
    return [
        {
            "case": case,
            "without": name,
            "ms": round(1e3 * found.seconds, 1),
            "time over now": round(found.seconds / now.seconds, 3),
            "memory over now": round(found.peak_bytes / now.peak_bytes, 3),
        }
        for name, found in measured.items()
        if name != NOW.name
    ]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("output", "benchmark_out", "Folder for fast_pieces.csv and workers.log.")
    flags.DEFINE_string("cases", "", "Run the cases whose name matches this pattern.")
    flags.DEFINE_string("pieces", "", "Leave out the pieces whose name matches this pattern.")
    flags.DEFINE_integer("together", 5, "Pieces at a time: each takes a gigabyte or two.", 1)
    flags.DEFINE_integer("starts", 1, "Times each case is run with new processes.", 1, 100)


def _workers(pieces: Sequence[str], which: str) -> list[Worker]:
    is_training = which == "training"
    names = [name for name in pieces if name == "all of them" or (name in _FORWARD) != is_training]
    return [Worker(name, ("ours_without.py", "packed", name), "", "ours") for name in names]


def main() -> None:
    output = Path(FLAGS.output)
    named = {name: piece for name, piece in PIECES.items() if name != "nothing"}
    pieces = list(chosen("pieces", FLAGS.pieces, named))
    rows: list[dict[str, object]] = []
    for name, (which, of_encoder, precision) in chosen("cases", FLAGS.cases, CASES).items():
        case = next(case for case in ENCODER_CASES if case.name == of_encoder)
        workers = _workers(pieces, which)
        for first in range(0, len(workers), FLAGS.together):
            some = [NOW, *workers[first : first + FLAGS.together]]
            ask = functools.partial(case.request, which=which, precision=precision)
            log = output / "workers.log"
            turns = turns_of(some, ask, peers=str(PEERS), log=log, starts=FLAGS.starts)
            rows += rows_of(name, medians(turns))
            print_rows(rows[-len(turns) + 1 :])
            write_csv(output / "fast_pieces.csv", rows)  # After each case, in case of interruption.
    print(f"Wrote {output}/fast_pieces.csv")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
