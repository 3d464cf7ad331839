"""Compares exported models with Hugging Face's pipelines on PyTorch and on ONNX Runtime: text in,
answer out, each in one process.

    python -m benchmarks.serving --model_dirs=runs/sst2/model,runs/squad/model \
        --texts=glue/SST-2/dev.tsv --squad=squad/dev-v1.1.json --peers=benchmarks/.peers

Each model folder (classification or SQuAD 1.1) is exported for this project, and converted for the
others, so that all run the same weights. Each of `concurrency` clients sends requests of `batch`
rows, one after the other. The libraries take turns (make_peer_environments.sh makes their
environments). "batched" means that requests of several clients are merged, in ours by the scheduler
of TensorFlow Serving, in the others by an equivalent queue. Both use the values in
export/serving/batching.config; --batching=16x1000x2,... tries others: the largest batch, the
microseconds that it waits, the threads. `ours_over_it` compares batched with batched. Times include
the Python code of the others' pipelines, and for ours the overhead of calls from Python. ONNX
Runtime uses Optimum's plain file and one thread pool.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import huggingface, native
from albert_tf.finetuning.tasks.squad_scores import normalize_answer
from albert_tf.pretrained.loading import locate
from benchmarks.processes import PEERS, ROOT, Worker, installed, turns_of
from benchmarks.tables import chosen, print_rows, write_csv
from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError
from data_pipeline.finetuning.squad_files import read_squad
from export.tasks import export_model

FLAGS = flags.FLAGS
BATCHING_CONFIG = ROOT / "export" / "serving" / "batching.config"
OURS = Worker("ours", ("serving_ours.py",), "", "ours")
PEER_LIBRARIES = (
    Worker("Hugging Face pipeline", ("serving_huggingface.py", "torch"), "torch", "other"),
    Worker("ONNX Runtime", ("serving_huggingface.py", "onnx"), "torch", "other"),
)
_REQUESTS = 96  # Requests in a turn with one client.
_REQUESTS_OF_MANY = 12  # Requests per client with several clients or many rows.
_EXPORT_TASKS = {"classification": "classifier", "span": "question_answering"}  # By model.json's.


@dataclasses.dataclass(frozen=True)
class Batching:
    """Settings of the scheduler that merges requests, see TensorFlow Serving's batching.config.

    Attributes:
      max_batch_size: most rows in a batch.
      batch_timeout_micros: microseconds that a batch waits for more rows.
      num_batch_threads: number of batches that run concurrently.
      max_enqueued_batches: most batches that wait; further requests are refused.
    """

    max_batch_size: int
    batch_timeout_micros: int
    num_batch_threads: int
    max_enqueued_batches: int = 100

    def __str__(self) -> str:
        return f"{self.max_batch_size}x{self.batch_timeout_micros}x{self.num_batch_threads}"

    @classmethod
    def of_config(cls, path: Path) -> Batching:
        """The settings in a file in TensorFlow Serving's format."""
        found = re.findall(r"^(\w+) \{ value: (\d+) \}", path.read_text(), re.MULTILINE)
        return cls(**{name: int(value) for name, value in found})

    @classmethod
    def parse(cls, text: str) -> Batching:
        """The settings of "32x2000x4"."""
        if not re.fullmatch(r"\d+x\d+x\d+", text):
            raise UserError(
                f"--batching={text}: expected the largest batch, microseconds and threads, as in "
                "32x2000x4."
            )
        return cls(*map(int, text.split("x")))


def prepare(model_dir: str, folder: Path) -> dict[str, Any]:
    """Exports and converts a model folder into `folder`; returns its part of the workers' case, see
    workers/load.py.

    Raises:
      UserError: the kind of model is not supported.
    """
    metadata = native.read_metadata(model_dir)
    if metadata["task"] not in _EXPORT_TASKS:
        raise UserError(
            f"--model_dirs: {model_dir} is a model of {metadata['task']}; expected one of "
            f"{', '.join(_EXPORT_TASKS)}."
        )
    task = _EXPORT_TASKS[metadata["task"]]
    exported = export_model(model_dir, str(folder / "saved_model"), task)
    source = locate(model_dir)
    converted = str(folder / "huggingface")
    model = native.load_model(model_dir)
    huggingface.save(model, converted, labels=metadata.get("labels"))
    assert source.vocab_file
    tf.io.gfile.copy(source.vocab_file, f"{converted}/spiece.model")
    return {
        "task": task,
        "saved_model": exported.path,
        "huggingface": converted,
        "max_seq_length": metadata["max_seq_length"],
        "doc_stride": metadata.get("doc_stride"),
    }


def read_rows(task: str, count: int) -> list[Any]:
    """`count` random rows of the task's file; repeated if it has fewer."""
    if task == "classifier":
        path = FLAGS.texts or _missing("texts", task)
        lines = Path(path).read_text(encoding="utf-8").splitlines()[1:]
        rows: list[Any] = [line.split("\t")[0] for line in lines]
    else:
        examples = read_squad(FLAGS.squad or _missing("squad", task))
        rows = [
            {"question": question.text, "context": examples.contexts[question.context]}
            for question in examples.questions
        ]
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[order[index % len(rows)]] for index in range(count)]


def _missing(flag: str, task: str) -> str:
    raise UserError(f"--{flag}: a file is needed for the model of {task}.")


def rows_of(
    name: str, batch: int, concurrency: int, turns: dict[str, list[dict[str, Any]]]
) -> list[dict[str, object]]:
    """A row per library: its latencies, its answers per second, and the ratio of our answers per
    second, with the same batching, to its own.

    Args:
      name: name of the model.
      batch: rows in a request.
      concurrency: number of clients.
      turns: answers of the workers' turns by library.
    """
    rates = {
        library: float(np.median([len(turn["answers"]) / turn["seconds"] for turn in taken]))
        for library, taken in turns.items()
    }
    expected = turns[OURS.name][-1]["answers"] if OURS.name in turns else None
    rows = []
    for library, taken in turns.items():
        milliseconds = 1e3 * np.concatenate([turn["latencies"] for turn in taken])
        answers = taken[-1]["answers"]
        same = np.mean([*map(same_answer, answers, expected)]) if expected else np.nan
        rows.append(
            {
                "model": name,
                "batch": batch,
                "clients": concurrency,
                "library": library,
                "p50_ms": round(float(np.percentile(milliseconds, 50)), 1),
                "p99_ms": round(float(np.percentile(milliseconds, 99)), 1),
                "answers_per_s": round(rates[library], 1),
                "ours_over_it": round(rates.get(_ours_like(library), np.nan) / rates[library], 2),
                "same_answers": round(float(same), 3),
                "peak_mb": taken[-1]["peak_bytes"] >> 20,
            }
        )
    return rows


def _ours_like(library: str) -> str:
    """Ours with the batching of a library: "Peer, batched 8x1x1" -> "ours, batched 8x1x1"."""
    return OURS.name + "".join(library.partition(", batched")[1:])


def same_answer(answer: str, other: str) -> bool:
    """Whether SQuAD's metrics treat two answers as equal: Hugging Face's begin with a space."""
    return normalize_answer(answer) == normalize_answer(other)


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_list("model_dirs", None, "Fine-tuned model folders.", required=True)
    flags.DEFINE_string("texts", None, "TSV file with a header; its first column is classified.")
    flags.DEFINE_string("squad", None, "Questions in SQuAD's format.")
    flags.DEFINE_list(
        "loads", ["1x1", "1x8", "1x32", "32x1", "32x8"], "Loads to measure, each as rows x clients."
    )
    flags.DEFINE_list("batching", [], "Scheduler settings besides those of batching.config.")
    flags.DEFINE_string("libraries", "", "Run the libraries whose name matches this pattern.")
    flags.DEFINE_integer("rows", 0, "Rows of a turn; 0: as many as suit the load.", 0)
    flags.DEFINE_integer(
        "starts", 1, "Number of times that each load is run with new processes.", 1, 100
    )
    flags.DEFINE_string("peers", str(PEERS), "Folder of the peers' environments.")
    flags.DEFINE_string("output", "benchmark_out", "Folder for serving.csv and workers.log.")


def main() -> None:
    output = Path(FLAGS.output)
    loads = [parse_load(text) for text in FLAGS.loads]
    schedulers = [Batching.of_config(BATCHING_CONFIG), *map(Batching.parse, FLAGS.batching)]
    libraries, batched = [OURS, *PEER_LIBRARIES], {}
    for worker, scheduler in itertools.product(tuple(libraries), schedulers):
        name = f"{worker.name}, batched {scheduler}"
        batched[name] = dataclasses.asdict(scheduler)
        libraries.append(dataclasses.replace(worker, name=name))
    wanted = chosen("libraries", FLAGS.libraries, {worker.name: worker for worker in libraries})
    workers = installed(wanted.values(), FLAGS.peers)
    done: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, model_dir in enumerate(FLAGS.model_dirs):
            model = prepare(model_dir, Path(scratch) / str(number))
            name = Path(model_dir).resolve().parent.name
            for batch, clients in loads:
                turns = measure(model, batch, clients, workers, batched)
                rows = rows_of(name, batch, clients, turns)
                print_rows(rows)
                done += rows
                write_csv(output / "serving.csv", done)
    print(f"Wrote {output}/serving.csv")


def measure(
    model: dict[str, Any],
    batch: int,
    clients: int,
    workers: list[Worker],
    batched: dict[str, dict],
) -> dict[str, list[dict[str, Any]]]:
    """The turns of all workers under a load, by library; `model`: see `prepare`; `batched`: see
    `Batching`, by library.
    """
    size = batch * (_REQUESTS if batch == clients == 1 else _REQUESTS_OF_MANY * clients)
    case = {
        **model,
        "rows": read_rows(model["task"], FLAGS.rows or size),
        "batch": batch,
        "concurrency": clients,
    }
    return turns_of(
        # With one client, there are no requests to merge.
        [worker for worker in workers if clients > 1 or worker.name not in batched],
        lambda worker: {**case, "batching": batched.get(worker.name)},
        peers=FLAGS.peers,
        log=Path(FLAGS.output) / "workers.log",
        starts=FLAGS.starts,
    )


def parse_load(text: str) -> tuple[int, int]:
    """The rows of a request and the number of clients, from "32x8"."""
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*", text):
        raise UserError(f"--loads={text}: expected rows x clients, as in 32x8.")
    batch, clients = text.split("x")
    return int(batch), int(clients)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
