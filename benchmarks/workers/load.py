"""Requests to a served model, some of them at a time: the load of the serving benchmark.

Runs in the environments of other libraries, so it needs nothing but Python.
"""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable
from typing import Any

Row = Any  # A text, or {"question": ..., "context": ...}.


class Load:
    """All rows of a case once, in requests of `batch` rows, `concurrency` of them at a time.

    A closed loop: each of so many clients sends its next request when it has its answer.

    Attributes:
      found: of the last run: "latencies", seconds of each request; "answers", one a row.
    """

    def __init__(self, case: dict[str, Any], ask: Callable[[list[Row]], list[str]]) -> None:
        """Args:
        case: `rows`, `batch`, `concurrency`.
        ask: the rows of a request -> the answer to each.
        """
        rows, size = case["rows"], case["batch"]
        self._requests = [rows[start : start + size] for start in range(0, len(rows), size)]
        self._clients = concurrent.futures.ThreadPoolExecutor(case["concurrency"])
        self._ask = ask
        self.found: dict[str, Any] = {}

    def __call__(self) -> None:
        timed = list(self._clients.map(self._timed, self._requests))
        self.found = {
            "latencies": [seconds for seconds, _ in timed],
            "answers": [answer for _, answers in timed for answer in answers],
        }

    def _timed(self, rows: list[Row]) -> tuple[float, list[str]]:
        start = time.perf_counter()
        answers = self._ask(rows)
        return time.perf_counter() - start, answers
