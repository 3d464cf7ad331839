"""Benchmark workers: other programs, each in its own environment, that take turns."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WORKERS = Path(__file__).parent / "workers"
# A case takes turns until each library has had so many seconds, within these numbers of turns.
_SECONDS, _FEWEST, _MOST = 15.0, 3, 15


@dataclasses.dataclass(frozen=True)
class Worker:
    """A library: its script with arguments, and its environment.

    Attributes:
      environment: a folder of `peers`; "" is the environment that the benchmark runs in.
      kind: "ours", "tensorflow", "other" or "limit".
    """

    name: str
    command: tuple[str, ...]
    environment: str
    kind: str

    def python(self, peers: str) -> Path:
        """The interpreter of the environment."""
        if not self.environment:
            return Path(sys.executable)
        return Path(peers) / self.environment / "bin" / "python"


class Process:
    """A running worker; see workers/protocol.py for what it is asked and answers."""

    def __init__(self, worker: Worker, peers: str, log: Path):
        self.worker, self._log = worker, log
        with open(log, "a") as messages:
            self._process = subprocess.Popen(
                [worker.python(peers), WORKERS / worker.command[0], *worker.command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Sends a request, waits for the answer."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.worker.name} ended; see {self._log}.")
        return json.loads(answer)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_) -> None:
        self._process.stdin.close()
        self._process.wait()


def take_turns(
    processes: Sequence[Process], case_for: Callable[[Worker], dict[str, Any]]
) -> dict[str, float]:
    """Median seconds of a case by worker; those that lack it are left out.

    Args:
      case_for: what each worker is asked to run.
    """
    ready = [p for p in processes if p.ask(case=case_for(p.worker))["ready"]]
    first = max((p.ask(run=True)["seconds"] for p in ready), default=0.0)
    rounds = max(_FEWEST, min(_MOST, round(_SECONDS / max(first, 1e-3))))
    seconds: dict[str, list[float]] = {process.worker.name: [] for process in ready}
    for _ in range(rounds):
        for process in ready:
            seconds[process.worker.name].append(process.ask(run=True)["seconds"])
    return {name: statistics.median(times) for name, times in seconds.items()}
