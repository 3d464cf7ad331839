"""Memory of the program that makes pre-training records, over thousands of blocks of text.

    python -m benchmarks.block_memory --text=corpus.txt --vocab_file=spiece.model

The resident memory of the program itself, not of the processes that it starts, is measured beside
the number of blocks that are finished. Its growth per block is the slope of a line through the
second half of the run, when everything is loaded. --before=FOLDER measures another version of this
project after this one.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.programs import memory_mb, text_of
from benchmarks.tables import print_rows, write_csv
from data_pipeline.errors import UserError

FLAGS = flags.FLAGS
ROOT = Path(__file__).parents[1]
_SAMPLE_SECONDS = 0.1
_ROWS = 10


def curve(program: Path, text: Path, output: Path) -> list[tuple[int, float]]:
    """Pairs of finished blocks and resident MB over the time of one run.

    Args:
      program: folder of a version of this project.
      text: corpus of the run.
      output: folder for the records.

    Raises:
      UserError: the program failed.
    """
    command = [
        sys.executable, "-m", "data_pipeline.create_pretraining_data", f"--input={text}",
        f"--vocab_file={Path(FLAGS.vocab_file).resolve()}", f"--output_dir={output}",
        "--masking=dynamic", "--dupe_factor=1", f"--num_processes={FLAGS.processes}",
        f"--shard_mb={FLAGS.block_kb / 1024}",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    samples: list[tuple[int, float]] = []
    while process.poll() is None:
        blocks = sum(1 for _ in output.glob(".partial/block-*.json"))
        memory = memory_mb(process.pid)
        if samples and blocks < samples[-1][0]:  # They are being published.
            break
        samples.append((blocks, memory))
        time.sleep(_SAMPLE_SECONDS)
    if process.wait():
        raise UserError(f"{program}: the program ended with code {process.returncode}.")
    return samples


def summary_rows(name: str, samples: list[tuple[int, float]]) -> list[dict[str, object]]:
    """Rows at equal distances, each with the slope of the second half of the run."""
    blocks, memory = np.array(samples).T
    late = blocks >= blocks[-1] / 2
    slope = np.polyfit(blocks[late], memory[late] * 1024, 1)[0]
    print(f"{name}: {slope:.2f} KB a block, {memory.max():.0f} MB at most", flush=True)
    rows = [np.searchsorted(blocks, blocks[-1] * i / _ROWS) for i in range(1, _ROWS + 1)]
    return [
        {
            "version": name,
            "blocks": int(blocks[row]),
            "resident MB": round(float(memory[row]), 1),
            "KB a block, second half": round(float(slope), 2),
        }
        for row in rows
    ]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("text", None, "Text, one sentence per line.", required=True)
    flags.DEFINE_string("vocab_file", None, "SentencePiece model.", required=True)
    flags.DEFINE_string("before", "", "Folder of another version of this project.")
    flags.DEFINE_string("output", "benchmark_out", "Folder for pretraining_data_blocks.csv.")
    flags.DEFINE_string("scratch", "", "Folder for text and records; default: the system's.")
    flags.DEFINE_float("megabytes", 75, "Size of the text, which is repeated if need be.", above=0)
    flags.DEFINE_float(
        "block_kb", 4, "A block ends with the document that fills this many KB.", above=0
    )
    flags.DEFINE_integer("processes", 2, "Processes that make records.", lower_bound=2)


def main() -> None:
    programs = {"this": ROOT} | ({"before": Path(FLAGS.before)} if FLAGS.before else {})
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(dir=FLAGS.scratch or None) as folder:
        text = text_of(Path(FLAGS.text), FLAGS.megabytes, Path(folder) / "text.txt")
        for name, program in programs.items():
            samples = curve(program.resolve(), text, Path(folder) / name)
            rows += summary_rows(name, samples)
    print_rows(rows)
    write_csv(Path(FLAGS.output) / "pretraining_data_blocks.csv", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
