"""Kills a process at each of the moments at which it changes files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest
import tensorflow as tf

CHANGES = ("rename", "remove", "rmtree", "makedirs")  # Of tf.io.gfile.


@pytest.fixture
def crash_points() -> Callable[..., Iterator[None]]:
    """(prepare, work, more=()) -> runs `prepare()` and then, in a forked process, `work()`. It is
    killed before its first change of files, next time before its second, and so on. Yields after
    each, and ends after one that was not killed.

    `work` may compute nothing with TensorFlow, which does not survive a fork. more: functions that
    change files beside tf.io.gfile's, as pairs of a module and a name.
    """
    return _crash_points


def _crash_points(
    prepare: Callable[[], None], work: Callable[[], None], more: tuple[tuple[object, str], ...] = ()
) -> Iterator[None]:
    for number in range(100):
        prepare()
        child = os.fork()
        if child == 0:
            counted = [0]
            for place, name in [*((tf.io.gfile, name) for name in CHANGES), *more]:
                setattr(place, name, _counted(getattr(place, name), counted, number))
            work()
            os._exit(0)
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
