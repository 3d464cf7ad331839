"""Turns: as many requests are worked on at once as there are cores, some wait, others are refused.

A body of JSON takes twenty times its bytes once it is read, and a graph takes memory, too. So a
request has one turn for all of it: what it is read to, its graph, and its answer.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from export.server.errors import RESOURCE_EXHAUSTED, ServingError

WAIT_SECONDS = 30  # For a turn; TF Serving's time for a request over REST.
MOST_REQUESTS = 96  # That have a turn or wait for one. There are threads for others.


class Turns:
    """Who may work.

    Args:
      at_once: so many have a turn.
      most_requests: so many have one or wait for it.
    """

    def __init__(self, at_once: int | None = None, most_requests: int = MOST_REQUESTS) -> None:
        self._most_requests = most_requests
        self._turns = threading.Semaphore(at_once or os.cpu_count() or 1)
        self._places = threading.Semaphore(most_requests)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """A context in which a request is read and answered, when others are done.

        Raises:
          ServingError: RESOURCE_EXHAUSTED where too many wait already, or others take too long.
        """
        if not self._places.acquire(blocking=False):
            raise _busy(f"{self._most_requests} requests are at work or wait already")
        try:
            if not self._turns.acquire(timeout=WAIT_SECONDS):
                raise _busy(f"Other requests were not done in {WAIT_SECONDS} seconds")
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._places.release()


def _busy(reason: str) -> ServingError:
    return ServingError(RESOURCE_EXHAUSTED, f"{reason}. Try again later.")
