"""Speed and memory of ALBERT base (or --model=bert-base): this project, its peers and the machine's
matmul rate, in one interleaved run.

    python -m benchmarks.encoder --peers=benchmarks/.peers --output=docs/benchmarks

Each library runs in its own environment (make_peer_environments.sh); a peer that is not installed
is left out. For each case, every library starts a process, and the processes take turns, so that
other load on the machine affects all of them equally; medians are compared. Two processes of one
program can differ by several percent: --starts=5 repeats each case with five processes. Weights are
random. All libraries are in memory at the same time: if that is too much, select some with
--libraries. --before=FOLDER also measures another version of this project, in rows "before: ...".
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from albert_tf import get_preset
from albert_tf.analysis.costs import encoder_flops_per_token
from benchmarks.encoder_cases import CASES, MODELS, Case
from benchmarks.processes import PEERS, Measurement, Worker, installed, medians, turns_of
from benchmarks.tables import chosen, print_rows, write_csv
from data_pipeline.command_line import flags, run_binary

FLAGS = flags.FLAGS
_MATMUL_FLOPS = 24 * 2 * 2 * 1024 * 768 * 3072  # The operations of workers/matmul.py.

LIBRARIES = (
    Worker("ours, packed", ("ours.py", "packed"), "", "ours"),
    Worker("ours, padded", ("ours.py", "padded"), "", "ours"),
    Worker("Hugging Face TFAlbert", ("huggingface_tf.py",), "tf", "tensorflow"),
    Worker("Model Garden", ("model_garden.py",), "tf", "tensorflow"),
    Worker("KerasHub", ("kerashub.py",), "keras", "tensorflow"),
    Worker("Hugging Face PyTorch", ("huggingface_torch.py",), "torch", "other"),
    Worker("ONNX Runtime", ("onnx_runtime.py",), "torch", "other"),
)
LIMIT = Worker("matmul limit", ("matmul.py",), "", "limit")


def with_versions(libraries: Iterable[Worker], before: str) -> list[Worker]:
    """The libraries, with those of this project added a second time, in the version in `before`."""
    found = list(libraries)
    if before:
        folder = Path(before).resolve()
        ours = [worker for worker in found if worker.kind == "ours"]
        found += [replace(worker, name=f"before: {worker.name}", folder=folder) for worker in ours]
    return found


def rows_of(
    case: Case, which: str, precision: str, measured: dict[str, Measurement]
) -> list[dict[str, object]]:
    """A row per library: its rates, and its ratios to the limit and to the best TF peer."""
    seconds = {name: measurement.seconds for name, measurement in measured.items()}
    limit = seconds.get(LIMIT.name)
    peers = [worker.name for worker in LIBRARIES if worker.kind == "tensorflow"]
    best_peer = min((seconds[name] for name in peers if name in seconds), default=None)
    config = get_preset(case.model)
    flops = sum(length * encoder_flops_per_token(config, length) for length in case.lengths)
    flops *= 3 if which == "training" else 1
    return [
        {
            "pass": which,
            "precision": precision,
            "case": case.name,
            "library": name,
            "ms": round(1e3 * taken, 1),
            "real_tokens_per_s": round(sum(case.lengths) / taken),
            "share_of_matmul": round(flops / taken * limit / _MATMUL_FLOPS, 3) if limit else "",
            "over_best_tf_peer": round(best_peer / taken, 2) if best_peer else "",
            "peak_mb": measured[name].peak_bytes >> 20,
        }
        for name, taken in seconds.items()
        if name != LIMIT.name
    ]


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Benchmark")
    flags.DEFINE_string("peers", str(PEERS), "Folder of the peers' environments.")
    flags.DEFINE_string("output", "benchmark_out", "Folder for encoder.csv and workers.log.")
    flags.DEFINE_string("before", "", "Folder of another version of this project.")
    flags.DEFINE_enum("model", "albert-base-v2", MODELS, "Preset to measure.")
    flags.DEFINE_string("cases", "", "Run the cases whose name matches this pattern.")
    flags.DEFINE_list("passes", ["forward", "training"], "Kinds of passes to measure.")
    flags.DEFINE_list("precisions", ["float32", "bfloat16"], "Precisions to measure in.")
    flags.DEFINE_integer(
        "starts", 1, "Number of times that each case is run with new processes.", 1, 100
    )
    flags.DEFINE_string("libraries", "", "Run the libraries whose name matches this pattern.")


def main() -> None:
    output = Path(FLAGS.output)
    log = output / "workers.log"
    every = [replace(case, model=FLAGS.model) for case in CASES]
    cases = chosen("cases", FLAGS.cases, {case.name: case for case in every}).values()
    libraries = chosen(
        "libraries", FLAGS.libraries, {library.name: library for library in LIBRARIES}
    ).values()
    workers = installed([*with_versions(libraries, FLAGS.before), LIMIT], FLAGS.peers)
    rows: list[dict[str, object]] = []
    for which, case, precision in itertools.product(FLAGS.passes, cases, FLAGS.precisions):
        ask = functools.partial(case.request, which=which, precision=precision)
        turns = turns_of(workers, ask, peers=FLAGS.peers, log=log, starts=FLAGS.starts)
        of_case = rows_of(case, which, precision, medians(turns))
        if of_case:
            rows += of_case
            print_rows(of_case)
            write_csv(output / "encoder.csv", rows)  # After each case, in case of interruption.
    print(f"Wrote {output}/encoder.csv")


if __name__ == "__main__":
    define_flags()
    run_binary(main)
