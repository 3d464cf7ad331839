"""Who may work, who waits, and who is refused."""

from __future__ import annotations

import threading
import time

import pytest

from export.server import turns
from export.server.errors import RESOURCE_EXHAUSTED, ServingError
from export.server.turns import Turns


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(turns, "WAIT_SECONDS", 0.01)
    found = Turns(at_once=1)
    message = "were not done in 0.01 seconds. Try again later"
    with found.turn():
        for _ in range(3):  # Who was refused leaves no trace.
            with pytest.raises(ServingError, match=message) as refusal, found.turn():
                pass
        assert refusal.value.code == RESOURCE_EXHAUSTED
    with found.turn():
        pass


def test_too_many_are_refused_at_once_and_others_have_their_turn():
    found, done = Turns(at_once=1, most_requests=3), []

    def work() -> None:
        with found.turn():
            done.append(threading.current_thread())

    waiting = [threading.Thread(target=work) for _ in range(2)]
    with found.turn():
        for thread in waiting:
            thread.start()
        end = time.monotonic() + 30
        while found._places._value and time.monotonic() < end:  # Until both wait.
            time.sleep(0.001)
        with (
            pytest.raises(ServingError, match="^3 requests are at work or wait already"),
            found.turn(),
        ):
            pass
        assert not done
    for thread in waiting:
        thread.join()
    assert sorted(done, key=waiting.index) == waiting


def test_a_turn_ends_with_an_error():
    found = Turns(at_once=1, most_requests=1)
    for _ in range(2):
        with pytest.raises(KeyError), found.turn():
            raise KeyError
