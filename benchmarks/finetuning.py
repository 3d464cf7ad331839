"""Whole fine-tuning commands, from files to the dev score: this project and its peers.

    python -m benchmarks.finetuning --data_dir=data --vocab_file=spiece.model \
        --peers=benchmarks/.peers --output=docs/benchmarks

--data_dir has glue/SST-2, glue/MRPC, squad and race with the official files; only their first
examples are used. Each library trains the same architecture from random weights for one epoch, with
the same batch size, and evaluates it on the dev set. That is too little training for a meaningful
score: it only shows that the command ran to its end. Each library runs in its own environment
(make_peer_environments.sh); a peer that is not installed, or lacks a task, is left out. The
commands take turns, and medians are compared. For a quick test, use --preset=albert-tiny
--train_examples=32 --dev_examples=32.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from albert_tf.pretrained.presets import get_preset
from benchmarks.finetuning_files import Layout, Lines, Race, Squad
from benchmarks.processes import PEERS, WORKERS, Worker, environment_variables, installed
from benchmarks.tables import chosen, print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS
_LEARNING_RATE, _DROPOUT = 2e-5, 0.1
# Fields of the architecture that all libraries support.
_SHAPE = (
    *("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("intermediate_size", "max_position_embeddings"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob"),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A task, and how many of its examples to use.

    Attributes:
      task: value of --task.
      layout: layout of its files.
      source: patterns of the files in --data_dir, with {split}; the first match is used.
      copy: path of the copies, where the task's program reads them, with {split}.
      num_train, num_dev: numbers of examples; this project needs a few minutes on two cores.
      batch_size: B.
      eval_batch_size: batch size for the dev set.
      max_seq_length: S.
      metric: the score's name in results.json.
    """

    task: str
    layout: Layout
    source: str
    copy: str
    num_train: int
    num_dev: int
    batch_size: int
    eval_batch_size: int
    max_seq_length: int
    metric: str = "accuracy"

    def copy_data(self, data_dir: Path, folder: Path) -> dict[str, int]:
        """Writes the first examples of both splits; returns the number of examples by split."""
        counts = {}
        for split, wanted in (
            ("train", FLAGS.train_examples or self.num_train),
            ("dev", FLAGS.dev_examples or self.num_dev),
        ):
            pattern = self.source.format(split=split)
            found = sorted(data_dir.glob(pattern))
            if not found:
                raise UserError(f"--data_dir={data_dir} has no {pattern}; {self.task} needs it.")
            records = self.layout.first(self.layout.read(found[0]), wanted)
            path = folder / self.copy.format(split=split)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.layout.write(records, path)
            counts[split] = sum(map(self.layout.size, records))
        return counts

    def request(self, data_dir: Path, config: dict[str, Any], answer: Path) -> dict[str, Any]:
        """The request for a peer's worker, which writes its score to the file `answer`."""
        return {
            "task": self.task,
            "data_dir": str(data_dir),
            "vocab_file": FLAGS.vocab_file,
            "config": config,
            "dropout": _DROPOUT,
            "learning_rate": _LEARNING_RATE,
            "batch_size": self.batch_size,
            "eval_batch_size": self.eval_batch_size,
            "max_seq_length": self.max_seq_length,
            "answer": str(answer),
        }

    def flags(self, data_dir: Path, config_file: Path, output_dir: Path) -> list[str]:
        """Flags for this project's command."""
        return [
            f"--task={self.task}",
            f"--data_dir={data_dir}",
            f"--vocab_file={FLAGS.vocab_file}",
            f"--config_file={config_file}",
            f"--classifier_dropout={_DROPOUT}",
            f"--learning_rate={_LEARNING_RATE}",
            "--num_train_epochs=1",
            f"--train_batch_size={self.batch_size}",
            f"--eval_batch_size={self.eval_batch_size}",
            f"--max_seq_length={self.max_seq_length}",
            f"--output_dir={output_dir}",
        ]


_SST2_HEADER = "sentence\tlabel"
_MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
CASES = {
    "SST-2": Case(
        *("sst-2", Lines(_SST2_HEADER), "glue/SST-2/{split}.tsv", "SST-2/{split}.tsv"),
        *(2_500, 400, 32, 64, 128),
    ),
    "MRPC": Case(
        *("mrpc", Lines(_MRPC_HEADER), "glue/MRPC/{split}.tsv", "MRPC/{split}.tsv"),
        *(800, 400, 32, 64, 128),
    ),
    "SQuAD": Case(
        *("squad1.1", Squad(), "squad/{split}-v1.1*.json", "{split}-v1.1.json"),
        *(300, 150, 8, 16, 384, "f1"),
    ),
    "RACE": Case("race", Race(), "race/{split}", "{split}", 32, 20, 2, 4, 512),
}
LIBRARIES = {
    worker.name: worker
    for worker in (
        Worker("ours", ("-m", "albert_tf.run_finetuning"), "", "ours"),
        Worker("Hugging Face TFAlbert", ("finetuning_tf.py",), "tf", "tensorflow"),
        Worker("KerasHub", ("finetuning_kerashub.py",), "keras", "tensorflow"),
        Worker("Hugging Face PyTorch", ("finetuning_torch.py",), "torch", "other"),
    )
}
LACKING = {"KerasHub": ("squad1.1", "race")}  # KerasHub's ALBERT has no heads for them.


@dataclasses.dataclass(frozen=True)
class Turn:
    """A finished command: its seconds, its peak memory, and its score on the dev set."""

    seconds: float
    peak_bytes: int
    score: float


class CommandFailed(RuntimeError):
    """A command failed, for example because it ran out of memory."""


def run_command(command: list[str], log: Path) -> tuple[float, int]:
    """Seconds and peak memory of a command.

    Raises:
      CommandFailed: it failed; its messages are in the log.
    """
    with open(log, "a", encoding="utf-8") as messages:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=messages, stderr=messages, env=environment_variables()
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
    if process.returncode:
        raise CommandFailed(f"exit status {process.returncode}, see {log}")
    return seconds, usage.ru_maxrss * 1024


def run_turn(worker: Worker, case: Case, data: Path, config: dict[str, Any], log: Path) -> Turn:
    """Runs a library's whole command once."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shape = {name: config[name] for name in _SHAPE}
        if worker.kind == "ours":
            config_file = folder / "albert_config.json"
            config_file.write_text(json.dumps(config))
            given = case.flags(data, config_file, folder / "run")
            seconds, peak = run_command([sys.executable, *worker.command, *given], log)
            result = json.loads((folder / "run" / "results.json").read_text())["results"][0]
            return Turn(seconds, peak, result["last"]["metrics"][case.metric])
        request, answer = folder / "request.json", folder / "answer.json"
        request.write_text(json.dumps(case.request(data, shape, answer)))
        script = WORKERS / worker.command[0]
        python = worker.python(FLAGS.peers)
        seconds, peak = run_command([str(python), str(script), str(request)], log)
        return Turn(seconds, peak, json.loads(answer.read_text())["score"])


def rows_of(
    name: str, case: Case, counts: dict[str, int], turns: dict[str, list[Turn]]
) -> list[dict[str, object]]:
    """A row per library: its time, and the ratio to ours."""
    seconds = {
        library: statistics.median(turn.seconds for turn in found)
        for library, found in turns.items()
    }
    ours = seconds.get("ours")
    return [
        {
            "task": name,
            "train": counts["train"],
            "dev": counts["dev"],
            "batch": case.batch_size,
            "length": case.max_seq_length,
            "library": library,
            "turns": len(turns[library]),
            "seconds": round(taken, 1),
            "times ours": round(taken / ours, 2) if ours else "",
            "peak MB": max(turn.peak_bytes for turn in turns[library]) >> 20,
            "score": round(turns[library][-1].score, 3),
        }
        for library, taken in seconds.items()
    ]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("data_dir", None, "Folder with glue, squad and race.", required=True)
    flags.DEFINE_string("vocab_file", None, "SentencePiece model.", required=True)
    flags.DEFINE_string("preset", "albert-base-v2", "Architecture.")
    flags.DEFINE_string("peers", str(PEERS), "Folder of the peers' environments.")
    flags.DEFINE_string("output", "benchmark_out", "Folder for finetuning.csv and its log.")
    flags.DEFINE_string("cases", "", "Run the tasks whose name matches this pattern.")
    flags.DEFINE_string("libraries", "", "Run the libraries whose name matches this pattern.")
    flags.DEFINE_integer("rounds", 3, "Number of times that each command is run.", lower_bound=1)
    flags.DEFINE_integer(
        "train_examples", 0, "Number of training examples per task; 0: as many as suit it.", 0
    )
    flags.DEFINE_integer(
        "dev_examples", 0, "Number of dev examples per task; 0: as many as suit it.", 0
    )


def main() -> None:
    output = Path(FLAGS.output)
    output.mkdir(parents=True, exist_ok=True)
    cases = chosen("cases", FLAGS.cases, CASES)
    wanted = chosen("libraries", FLAGS.libraries, LIBRARIES)
    workers = installed(wanted.values(), FLAGS.peers)
    tokenizer = load_tokenizer(FLAGS.vocab_file)
    config = get_preset(FLAGS.preset).replace(vocab_size=tokenizer.vocab_size).to_dict()
    done: dict[str, list[dict[str, object]]] = {}
    for name, case in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            counts = case.copy_data(Path(FLAGS.data_dir), Path(folder))
            turns: dict[str, list[Turn]] = {}
            for _, worker in itertools.product(range(FLAGS.rounds), workers):
                if case.task in LACKING.get(worker.name, ()):
                    continue
                try:
                    turn = run_turn(worker, case, Path(folder), config, output / "finetuning.log")
                except CommandFailed as failed:
                    print(f"{name}, {worker.name}, is left out: {failed}", flush=True)
                    continue
                turns.setdefault(worker.name, []).append(turn)
                # After each turn, in case of interruption.
                done[name] = rows_of(name, case, counts, turns)
                write_csv(output / "finetuning.csv", list(itertools.chain(*done.values())))
        if name in done:
            print_rows(done[name])
    print(f"Wrote {output}/finetuning.csv")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
