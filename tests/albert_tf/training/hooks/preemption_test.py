"""Signals are heard at once, and what they end says what is saved."""

import os
import signal
import threading

import pytest
import tensorflow as tf

from albert_tf.training.hooks import preemption
from albert_tf.training.hooks.preemption import Preempted, StopRequest

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


@pytest.mark.parametrize(
    ("last_saved", "number", "code", "message"),
    [
        (7, signal.SIGTERM, 75, "stopped by SIGTERM at step 7; run the same command to go on"),
        (4, signal.SIGTERM, 75, "left out .* the newest checkpoint is of step 4; run the same"),
        (0, signal.SIGTERM, 75, "left out .* there is no checkpoint yet; run the same"),
        (7, signal.SIGINT, 130, "stopped by Ctrl-C at step 7; run"),
        (7, None, 75, "stopped by a signal to another worker at step 7; run"),
    ],
)
def test_what_is_said_at_the_end(last_saved, number, code, message):
    error = Preempted(7, last_saved, number)
    assert (error.step, error.last_saved, error.exit_code) == (7, last_saved, code)
    with pytest.raises(Preempted, match=message):
        raise error


def test_a_signal_is_remembered_and_the_handler_put_back():
    def handler(*unused):
        pytest.fail("not handed over")

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with StopRequest() as request:
            assert not request.arrived(ONE_DEVICE)
            os.kill(os.getpid(), signal.SIGTERM)
            assert request.arrived(ONE_DEVICE)
        assert signal.getsignal(signal.SIGTERM) is handler
        assert not StopRequest().arrived(ONE_DEVICE)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_nothing_is_changed():
    """Python lets only the main thread handle signals."""
    before, found = signal.getsignal(signal.SIGTERM), []

    def work():
        with StopRequest() as request:
            found.append((request.arrived(ONE_DEVICE), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, before)] and signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(("total", "expected"), [(0.0, False), (1.0, True), (2.0, True)])
def test_workers_stop_together(monkeypatch, total, expected):
    """Each says whether it was told, and hears whether any was."""
    kind = tf.distribute.MultiWorkerMirroredStrategy
    strategy, told = kind.__new__(kind), []

    def sum_over_workers(strategy, value):
        told.append(value)
        return total

    monkeypatch.setattr(preemption, "sum_over_workers", sum_over_workers)
    request = StopRequest()
    assert request.arrived(strategy) is expected and told == [0.0]
    request._remember(signal.SIGTERM, None)
    request.arrived(strategy)
    assert told == [0.0, 1.0]
