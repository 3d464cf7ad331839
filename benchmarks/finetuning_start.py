"""How soon fine-tuning begins: windows of SQuAD, and the first update on a long file.

    python -m benchmarks.finetuning_start --squad=train-v1.1.json --vocab_file=spiece.model \
        --peers=benchmarks/.peers

Windows: this project and Hugging Face's fast tokenizer in `Dataset.map` read the same file and make
its training windows (384 pieces, a stride of 128), each in a process of its own, in turns.

First update: seconds from the command until metrics.csv has the first update of 32 sentences, with
--sentences of 23 words each in the training file, and with a single batch of them, which is what
the command takes with nothing to read.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.processes import PEERS, WORKERS, Worker, environment_variables
from benchmarks.tables import print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
_BATCH, _WORDS = 32, 23
_LIBRARIES = (
    Worker("ours", ("windows_ours.py",), "", "ours"),
    Worker("Hugging Face", ("windows_huggingface.py",), "torch", "other"),
)


def windows_rows(squad: Path) -> list[dict[str, object]]:
    """A row for each library: questions a second, and a second of a core."""
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(squad, Path(folder) / "train-v1.1.json")
        request = Path(folder) / "request.json"
        case = {"task": "squad1.1", "data_dir": folder, "vocab_file": FLAGS.vocab_file}
        request.write_text(json.dumps({**case, "max_seq_length": 384}))
        for _ in range(FLAGS.rounds):
            for worker in _LIBRARIES:
                python = worker.python(FLAGS.peers)
                if not python.exists():
                    continue
                command = [str(python), str(WORKERS / worker.command[0]), str(request)]
                answer = subprocess.run(
                    command, env=environment_variables(), capture_output=True, check=True, text=True
                ).stdout
                found.setdefault(worker.name, []).append(json.loads(answer.splitlines()[-1]))
    rates = {
        name: [
            statistics.median(turn["questions"] / turn[kind] for turn in turns)
            for kind in ("seconds", "core seconds")
        ]
        for name, turns in found.items()
    }
    return [
        {
            "library": name,
            "questions": turns[0]["questions"],
            "windows": turns[0]["windows"],
            "questions a second": round(rates[name][0]),
            "a second of a core": round(rates[name][1]),
            "ours, times as many": round(rates["ours"][1] / rates[name][1], 2),
        }
        for name, turns in found.items()
    ]


def write_sentences(path: Path, count: int, draw: random.Random) -> None:
    """A training file of made-up sentences with two labels."""
    words = [f"{a}{b}" for a in ("play", "walk", "talk", "turn") for b in ("", "s", "ed", "ing")]
    with open(path, "w", encoding="utf-8") as file:
        file.write("text\tlabel\n")
        for number in range(count):
            file.write(f"{' '.join(draw.choices(words, k=_WORDS))}\t{number % 2}\n")


def seconds_to_first_update(folder: Path, sentences: int) -> float:
    """From the command until metrics.csv has a row; the command is ended then.

    Raises:
      UserError: the command ended before.
    """
    write_sentences(folder / "train.tsv", sentences, random.Random(0))
    write_sentences(folder / "dev.tsv", _BATCH, random.Random(1))
    run = folder / "run"
    command = [
        *(sys.executable, "-m", "albert_tf.run_finetuning", "--task=tsv", "--steps_per_loop=1"),
        *(f"--train_file={folder}/train.tsv", f"--dev_file={folder}/dev.tsv"),
        *(f"--preset={FLAGS.preset}", f"--vocab_file={FLAGS.vocab_file}", f"--output_dir={run}"),
        *(f"--train_batch_size={_BATCH}", "--num_train_steps=1000"),
    ]
    start = time.perf_counter()
    with open(folder / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=environment_variables(), stdout=log, stderr=log)
    try:
        while not _has_a_row(run / "metrics.csv"):
            if process.poll() is not None:
                raise UserError(f"The command ended early:\n{(folder / 'log').read_text()}")
            time.sleep(0.02)
        return time.perf_counter() - start
    finally:
        process.kill()
        process.wait()


def _has_a_row(path: Path) -> bool:
    return path.exists() and path.read_text(encoding="utf-8").count("\n") > 1


def start_rows() -> list[dict[str, object]]:
    """A row for each length of the file."""
    lengths, found = (_BATCH, FLAGS.sentences), {}
    for _ in range(FLAGS.rounds):
        for sentences in lengths:
            with tempfile.TemporaryDirectory() as folder:
                seconds = seconds_to_first_update(Path(folder), sentences)
            found.setdefault(sentences, []).append(seconds)
    medians = {sentences: statistics.median(turns) for sentences, turns in found.items()}
    return [
        {
            "sentences": sentences,
            "seconds to the first update": round(seconds, 1),
            "times a single batch": round(seconds / medians[_BATCH], 2),
        }
        for sentences, seconds in medians.items()
    ]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("squad", None, "SQuAD's training file.", required=True)
    flags.DEFINE_string("vocab_file", None, "SentencePiece model.", required=True)
    flags.DEFINE_string("preset", "albert-base-v2", "Architecture of the first update.")
    flags.DEFINE_integer("sentences", 100_000, "Lines of the training file.", lower_bound=_BATCH)
    flags.DEFINE_integer("rounds", 3, "How often each command is run.", lower_bound=1)
    flags.DEFINE_string("peers", str(PEERS), "Folder of the peers' environments.")
    flags.DEFINE_string("output", "benchmark_out", "Folder for the tables.")


def main() -> None:
    if not Path(FLAGS.squad).exists():
        raise UserError(f"--squad={FLAGS.squad} does not exist; it is SQuAD's training file.")
    load_tokenizer(FLAGS.vocab_file)
    for name, rows in (("windows", windows_rows(Path(FLAGS.squad))), ("start", start_rows())):
        print_rows(rows)
        write_csv(Path(FLAGS.output) / f"finetuning_{name}.csv", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
