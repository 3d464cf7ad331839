"""Benchmark workers: other programs that take turns, each in its own environment."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WORKERS = ROOT / "benchmarks" / "workers"
PEERS = ROOT / "benchmarks" / ".peers"  # Default folder of make_peer_environments.sh.
# The slowest library of a case runs for about this many seconds, with turns within these limits.
_SECONDS, _FEWEST, _MOST = 8.0, 5, 25


@dataclasses.dataclass(frozen=True)
class Worker:
    """A library: its script with arguments, and its environment.

    Attributes:
      environment: a folder in `peers`; "" is the environment in which the benchmark runs.
      kind: "ours", "tensorflow", "other" or "limit".
      folder: the version of this project whose script and modules to run.
    """

    name: str
    command: tuple[str, ...]
    environment: str
    kind: str
    folder: Path = ROOT

    def python(self, peers: str) -> Path:
        """The interpreter of the environment."""
        if not self.environment:
            return Path(sys.executable)
        return Path(peers) / self.environment / "bin" / "python"


def installed(workers: Collection[Worker], peers: str) -> list[Worker]:
    """The workers whose environment exists; prints a line about the others."""
    found = [worker for worker in workers if worker.python(peers).exists()]
    if missing := [worker.name for worker in workers if worker not in found]:
        print(f"Not installed under {peers}, left out: {', '.join(missing)}")
    return found


def environment_variables(folder: Path = ROOT) -> dict[str, str]:
    """Environment variables with which a worker script, run by its path, imports albert_tf and
    data_pipeline from a folder, and TensorFlow reports only errors.
    """
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"}


class WorkerDied(RuntimeError):
    """A worker ended before it answered, for example because it ran out of memory."""


class Process:
    """A running worker; see workers/protocol.py for requests and answers."""

    def __init__(self, worker: Worker, peers: str, log: Path):
        self.worker = worker
        script = worker.folder / WORKERS.relative_to(ROOT) / worker.command[0]
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a") as messages:
            self._process: Any = subprocess.Popen(
                [worker.python(peers), script, *worker.command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                env=environment_variables(worker.folder),
            )

    def send(self, **request: Any) -> None:
        """Sends a request without waiting for the answer."""
        with contextlib.suppress(BrokenPipeError):  # receive() will report it.
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Waits for the answer."""
        answer = self._process.stdout.readline()
        if not answer:
            raise WorkerDied(self.worker.name)
        return json.loads(answer)

    def run(self) -> dict[str, Any]:
        """Runs the case once and returns the answer."""
        self.send(run=True)
        return self.receive()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A measurement of one library and one case.

    Attributes:
      seconds: median over its turns.
      peak_bytes: peak memory minus the memory after its imports.
    """

    seconds: float
    peak_bytes: int


def medians(turns: dict[str, list[dict[str, Any]]]) -> dict[str, Measurement]:
    """The measurements of all workers, by name, from the result of `turns_of`."""
    return {
        name: Measurement(
            statistics.median(turn["seconds"] for turn in taken), taken[-1]["peak_bytes"]
        )
        for name, taken in turns.items()
    }


def turns_of(
    workers: Sequence[Worker],
    case_for: Callable[[Worker], dict[str, Any]],
    *,
    peers: str,
    log: Path,
    starts: int = 1,
) -> dict[str, list[dict[str, Any]]]:
    """Runs a case with all workers in turn, each in a fresh process.

    Args:
      case_for: the case that each worker runs.
      peers: folder of the environments.
      log: file for the workers' standard error.
      starts: how many times to repeat the case with new processes: two processes of one program
        differ, for example in memory layout.

    Returns:
      The answers of all turns (workers/protocol.py) by worker name, without workers that lack the
      case or died; prints a line for each that died.
    """
    turns: dict[Worker, list[dict[str, Any]]] = {worker: [] for worker in workers}
    for _ in range(starts):
        found = _turns_of_one_start(list(turns), case_for, peers, log)
        turns = {worker: turns[worker] + taken for worker, taken in found.items()}
    return {worker.name: taken for worker, taken in turns.items()}


def _turns_of_one_start(
    workers: list[Worker], case_for: Callable[[Worker], dict[str, Any]], peers: str, log: Path
) -> dict[Worker, list[dict[str, Any]]]:
    """The answers, one per turn, of the workers that survived to the end."""
    turns: dict[Process, list[dict[str, Any]]] = {}
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(Process(worker, peers, log)) for worker in workers]
        for process in processes:
            process.send(case=case_for(process.worker))
        able = _answering(processes, lambda process: process.receive()["ready"])
        first = _answering(able, Process.run)
        longest = max((turn["seconds"] for turn in first.values()), default=0.0)
        ready = list(first)
        for _ in range(max(_FEWEST, min(_MOST, round(_SECONDS / max(longest, 1e-3))))):
            answers = _answering(ready, Process.run)
            ready = list(answers)[::-1]  # Reversed, so that no worker always follows the same one.
            for process, turn in answers.items():
                turns.setdefault(process, []).append(turn)
    return {process.worker: turns[process] for process in processes if process in ready}


def _answering(processes: Iterable[Process], ask: Callable[[Process], Any]) -> dict[Process, Any]:
    """Calls `ask` for each process in turn; returns the answers other than False, by process."""
    answers = {}
    for process in processes:
        try:
            answer = ask(process)
        except WorkerDied as died:
            print(f"{died} ended without an answer and is left out.", flush=True)
        else:
            if answer is not False:
                answers[process] = answer
    return answers
