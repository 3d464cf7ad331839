"""Keeps Python functions that TensorFlow's threads call from running when Python exits."""

from __future__ import annotations

import atexit
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

_SETTLE_SECONDS = 0.1  # For TensorFlow's Python code around a call.
_END = object()


# A dataset iterator prefetches. If the interpreter exits meanwhile, as at the end of a script that
# still holds the iterator, a thread inside Python code never returns, and the process waits for it
# forever. So the exit handler waits for running calls and refuses new ones.
class _Calls:
    """The calls that are running."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running, self._ended = 0, False
        atexit.register(self._end)

    def __enter__(self) -> None:
        with self._changed:
            if self._ended:
                raise RuntimeError("Python is shutting down: no further examples are made.")
            self._running += 1

    def __exit__(self, *unused: object) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: not self._running)
        time.sleep(_SETTLE_SECONDS)


_CALLS = _Calls()


def until_exit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function for `tf.numpy_function`; it raises RuntimeError once the program exits."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with _CALLS:
            return function(*arguments)

    return call


def items_until_exit(generate: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Wraps a generator function for `tf.data.Dataset.from_generator`; see `until_exit`."""

    @functools.wraps(generate)
    def items(*arguments: Any) -> Iterator[Any]:
        following = until_exit(functools.partial(next, generate(*arguments), _END))
        while (item := following()) is not _END:
            yield item

    return items
