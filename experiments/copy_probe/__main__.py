"""Counts how often models can copy a word from earlier in a text.

python -m experiments.copy_probe --model=albert-small-en --model=runs/mine
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables import print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from experiments.copy_probe import probe

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Probe")
    flags.DEFINE_multi_string(
        "model",
        ["albert-small-en"],
        "Weights with a masked-word head: a name, a folder or a checkpoint; may be repeated.",
    )
    flags.DEFINE_string("output", None, "CSV file for the counts.")


def main() -> None:
    rows = [{"model": name, **row} for name in FLAGS.model for row in probe(name)]
    print_rows(rows)
    if FLAGS.output:
        write_csv(Path(FLAGS.output), rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
