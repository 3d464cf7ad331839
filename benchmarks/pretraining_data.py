"""Speed and memory of creating pre-training records, compared with SentencePiece and a peer.

    python -m benchmarks.pretraining_data --text=corpus.txt --vocab_file=spiece.model

Every case is a separate process, and they take turns, so that other load on the machine affects all
of them equally; medians are compared. The text has one sentence per line and blank lines between
documents; it is truncated or repeated to the sizes below.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.processes import PEERS, WORKERS, environment_variables
from benchmarks.tables import print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
WORKER = WORKERS / "records.py"
_SAMPLE_SECONDS = 0.25
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)

# Name -> kind and options of workers/records.py.
CASES = {
    "SentencePiece alone": ("sentencepiece",),
    "ours, static, 1 copy": ("ours", "masking=static"),
    "ours, static, 4 copies": ("ours", "masking=static", "dupe_factor=4"),
    "ours, dynamic": ("ours", "masking=dynamic"),
    "tf.data.Dataset, static, 1 copy": ("dataset", "masking=static"),
    "tf.data.Dataset, dynamic": ("dataset", "masking=dynamic"),
    "Model Garden, 1 copy": ("garden",),
}


def text_of(source: Path, megabytes: float, path: Path) -> Path:
    """Writes the first megabytes of a text, repeated if necessary, to `path`; returns `path`."""
    content, size = source.read_bytes(), int(megabytes * 1e6)
    with open(path, "wb") as file:
        for start in range(0, size, len(content) + 2):
            taken = content[: size - start]
            if len(taken) < len(content):  # Only whole lines, so that no character is split.
                taken = taken[: taken.rfind(b"\n") + 1] or taken
            file.write(taken + b"\n\n")
    return path


def memory_mb(pid: int) -> float:
    """The resident memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MB
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def wordpiece_of(vocab_file: str, path: Path) -> Path:
    """A WordPiece vocabulary with the pieces of a SentencePiece model."""
    pieces = [
        piece[1:] if piece.startswith("\u2581") else f"##{piece}"
        for piece in load_tokenizer(vocab_file).pieces[5:]
    ]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    path.write_text("\n".join(dict.fromkeys([*special, *pieces])) + "\n", encoding="utf-8")
    return path


def run(
    python: str, kind: str, text: Path, vocabulary: str, *options: str, at_once: int = 1
) -> dict[str, float]:
    """Runs a case in one or several parallel processes; the maximum of seconds and peak memory."""
    with tempfile.TemporaryDirectory(dir=FLAGS.scratch or None) as folder:
        processes = [
            subprocess.Popen(
                [python, WORKER, kind, text, vocabulary, Path(folder) / str(i), *options],
                stdout=subprocess.PIPE,
                text=True,
                env=environment_variables(),
            )
            for i in range(at_once)
        ]
        shown = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise UserError(f"{' '.join((kind, *options))}: a worker failed, see above.")
    results = [json.loads(each.splitlines()[-1]) for each in shown]
    return {name: max(result[name] for result in results) for name in results[0]}


def compare(text: Path, wordpiece: Path) -> list[dict[str, object]]:
    """Runs all cases in turn, for several rounds; returns a row for each."""
    garden = Path(FLAGS.peers) / "tf" / "bin" / "python"
    turns: dict[str, list[dict[str, float]]] = {}
    for turn in range(FLAGS.rounds):
        for name, (kind, *options) in CASES.items():
            if kind != "garden":
                result = run(sys.executable, kind, text, FLAGS.vocab_file, *options)
            elif garden.exists() and turn < FLAGS.peer_rounds:
                result = run(str(garden), kind, text, str(wordpiece))
            else:
                continue
            turns.setdefault(name, []).append(result)
    seconds = {
        name: statistics.median(r["seconds"] for r in found) for name, found in turns.items()
    }
    megabytes = text.stat().st_size / 1e6
    return [
        {
            "case": name,
            "MB": megabytes,
            "seconds": round(seconds[name], 3),
            "MB/s": round(megabytes / seconds[name], 2),
            "of SentencePiece": round(seconds["SentencePiece alone"] / seconds[name], 2),
            "peak MB": round(max(r["peak_mb"] for r in turns[name])),
        }
        for name in turns
    ]


def scaling(text: Path) -> list[dict[str, object]]:
    """Runs the same large text with one process, with several, and at the machine's limit, in turn.

    The limit is the same number of independent programs, each with its own text.
    """
    count = FLAGS.processes
    cases = {
        "1 process": (1, 1),
        f"{count} processes": (count, 1),
        f"{count} programs, a text each": (1, count),
    }
    seconds: dict[str, list[float]] = {}
    for _ in range(FLAGS.scaling_rounds):
        for name, (processes, at_once) in cases.items():
            options = ("masking=static", f"num_processes={processes}")
            result = run(sys.executable, "ours", text, FLAGS.vocab_file, *options, at_once=at_once)
            seconds.setdefault(name, []).append(result["seconds"] / at_once)
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    megabytes = text.stat().st_size / 1e6
    return [
        {
            "who": name,
            "MB": round(megabytes),
            "seconds per text": round(found, 2),
            "MB/s": round(megabytes / found, 2),
            "times one": round(medians["1 process"] / found, 2),
        }
        for name, found in medians.items()
    ]


def memory_curve(text: Path) -> list[dict[str, object]]:
    """Resident memory over time of the program in one process on a very large text."""
    with tempfile.TemporaryDirectory(dir=FLAGS.scratch or None) as folder:
        command = [sys.executable, WORKER, "ours", text, FLAGS.vocab_file, Path(folder) / "out"]
        command.append("masking=static")
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment_variables())
        rows = []
        while process.poll() is None:
            seconds = round(time.monotonic() - start, 2)
            rows.append({"seconds": seconds, "resident MB": round(memory_mb(process.pid))})
            time.sleep(_SAMPLE_SECONDS)
    if process.returncode:
        raise UserError("The worker on a very large text failed, see above.")
    return rows


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("text", None, "Text, one sentence per line.", required=True)
    flags.DEFINE_string("vocab_file", None, "SentencePiece model.", required=True)
    flags.DEFINE_string("peers", str(PEERS), "Folder of the peers' environments.")
    flags.DEFINE_string("output", "benchmark_out", "Folder for the tables as CSV.")
    flags.DEFINE_string("scratch", "", "Folder for texts and records; default: the system's.")
    flags.DEFINE_float("megabytes", 6, "Size of the text that is compared.")
    flags.DEFINE_integer("rounds", 5, "Number of times that each case is run.", lower_bound=1)
    flags.DEFINE_integer("peer_rounds", 1, "Number of times that the slow peer is run.", 1)
    flags.DEFINE_float("scaling_megabytes", 100, "Size of the text for several processes; 0: none.")
    flags.DEFINE_integer(
        "scaling_rounds",
        3,
        "Number of times that the text for several processes is run.",
        lower_bound=1,
    )
    flags.DEFINE_integer("processes", 2, "Number of processes that are compared with one.", 1, 1024)
    flags.DEFINE_float("memory_megabytes", 1000, "Size of the text for memory; 0: none.")


def main() -> None:
    output, source = Path(FLAGS.output), Path(FLAGS.text)
    with tempfile.TemporaryDirectory(dir=FLAGS.scratch or None) as folder:
        scratch = Path(folder)
        wordpiece = wordpiece_of(FLAGS.vocab_file, scratch / "vocab.txt")
        rows = compare(text_of(source, FLAGS.megabytes, scratch / "small.txt"), wordpiece)
        print_rows(rows)
        write_csv(output / "pretraining_data.csv", rows)
        if FLAGS.scaling_megabytes:
            rows = scaling(text_of(source, FLAGS.scaling_megabytes, scratch / "large.txt"))
            print_rows(rows)
            write_csv(output / "pretraining_data_processes.csv", rows)
        if FLAGS.memory_megabytes:
            rows = memory_curve(text_of(source, FLAGS.memory_megabytes, scratch / "huge.txt"))
            peak = max(row["resident MB"] for row in rows)
            print(f"{FLAGS.memory_megabytes:.0f} MB of text: at most {peak} MB of memory")
            write_csv(output / "pretraining_data_memory.csv", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
