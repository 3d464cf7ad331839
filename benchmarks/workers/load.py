"""Concurrent requests to a served model: the load of the serving benchmark.

Runs in the environments of other libraries, so it uses only the standard library.
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

Row = Any  # A text, or {"question": ..., "context": ...}.


class Batches:
    """Merges the rows of several requests, like TensorFlow Serving's scheduler, for a library that
    has no scheduler.

    Args:
      ask: the rows of a batch -> the answer to each.
      max_batch_size: most rows in a batch; a larger request is a batch by itself.
      batch_timeout_micros: microseconds that a batch waits for more rows.
      num_batch_threads: number of batches that run concurrently.
      max_enqueued_batches: not used, as there are fewer clients.
    """

    def __init__(
        self,
        ask: Callable[[list[Row]], list[str]],
        max_batch_size: int,
        batch_timeout_micros: int,
        num_batch_threads: int,
        max_enqueued_batches: int,
    ) -> None:
        del max_enqueued_batches
        self._ask, self._most, self._seconds = ask, max_batch_size, batch_timeout_micros / 1e6
        self._requests: queue.Queue = queue.Queue()
        self._left: list[tuple] = []  # The request that did not fit into the last batch, if any.
        self._turn = threading.Lock()
        for _ in range(num_batch_threads):
            threading.Thread(target=self._work, daemon=True).start()

    def __call__(self, rows: list[Row]) -> list[str]:
        """The answers to the rows of a request."""
        answers: concurrent.futures.Future = concurrent.futures.Future()
        self._requests.put((rows, answers))
        return answers.result()

    def _work(self) -> None:
        while True:
            with self._turn:
                batch = self._gathered()
            try:
                found = iter(self._ask([row for rows, _ in batch for row in rows]))
                for rows, answers in batch:
                    answers.set_result([next(found) for _ in rows])
            except BaseException as error:
                for _, answers in batch:
                    answers.set_exception(error)

    def _gathered(self) -> list[tuple]:
        """The requests of the next batch."""
        batch = [self._left.pop() if self._left else self._requests.get()]
        size, end = len(batch[0][0]), time.monotonic() + self._seconds
        while size < self._most:
            try:
                request = self._requests.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            size += len(request[0])
            if size > self._most:
                self._left.append(request)
                break
            batch.append(request)
        return batch


class Load:
    """Sends all rows of a case once, in requests of `batch` rows, `concurrency` at a time.

    A closed loop: each client sends its next request after it received the answer.

    Attributes:
      found: results of the last run: "latencies", seconds of each request; "answers", one per row.
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
