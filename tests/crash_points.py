"""Kills a function before each of its changes of files, one after the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import tensorflow as tf

from data_pipeline.files import atomic_folders, storage

CHANGES = (
    *((tf.io.gfile, name) for name in ("rename", "remove", "rmtree", "makedirs")),
    *((storage, name) for name in ("rename", "remove", "remove_folder", "make_folder")),
    (atomic_folders, "_exchange"),
)


def crash_points(prepare: Callable[[], None], work: Callable[[], None]) -> Iterator[None]:
    """Runs `prepare()` and then, in a forked process, `work()`. It is killed before its first
    change of files, next time before its second, and so on. Yields after each, and ends after one
    that was not killed.

    `work` may compute nothing with TensorFlow, which does not survive a fork.
    """
    for number in range(100):
        prepare()
        child = os.fork()
        if child == 0:
            counted = [0]
            code = 1
            try:  # Whatever happens, this process is not a second pytest.
                for place, name in CHANGES:
                    setattr(place, name, _counted(getattr(place, name), counted, number))
                work()
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL)
        yield
        if status == 0:
            return


def _counted(function: Callable, counted: list[int], limit: int) -> Callable:
    def call(*arguments, **named):
        if counted[0] == limit:
            os.kill(os.getpid(), signal.SIGKILL)
        counted[0] += 1
        return function(*arguments, **named)

    return call
