"""A separate Python process that loads SavedModels and sends them requests.

It shares nothing with the process that exported them: no Keras model, no traced function, no table
or tokenizer. An export that works there works in any server.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from export.probes import Probe

_PROGRAM = "from export.check_export import answer_lines; answer_lines()"
_LAST_WORDS = 300  # How many characters of stderr are shown.


class FreshProcessError(Exception):
    """A problem that the process found, or its unexpected end; the message is for the user."""


class FreshProcess:
    """The other process; it starts immediately and imports TensorFlow in the background."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        # Not a pipe: it is read only at the end, so the process would block once it is full.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `close`)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            # The exporting process may hold all memory of the GPU.
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )
        atexit.register(self.close)

    @property
    def is_alive(self) -> bool:
        """Whether it accepts requests; False in a fork of the process that started it."""
        return self._owner == os.getpid() and self._process.poll() is None

    def check(self, directory: str, probes: Sequence[Probe], tolerance: float) -> dict[str, Any]:
        """The findings of `export.check_export.reply` about a SavedModel, from the process. Raises
        FreshProcessError if an answer differs, loading fails, or the process ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # Both were requested as pipes.
        try:
            pickle.dump((directory, list(probes), tolerance), stdin)
            stdin.flush()
            reply = stdout.readline()
        except BrokenPipeError:
            reply = b""
        if not reply:
            raise FreshProcessError(f"the process that loads it ended: {self._end()}")
        found = json.loads(reply)
        if "error" in found:
            raise FreshProcessError(found["error"])
        return found

    def _end(self) -> str:
        """The exit code and the end of stderr."""
        code = self._process.wait()
        self._errors.seek(0)
        words = " ".join(self._errors.read().decode(errors="replace").split())
        return f"exit code {code}, {words[-_LAST_WORDS:] or 'no output'}"

    def close(self) -> None:
        """Ends the process, and waits until it has ended."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():  # A fork copies this object, but does not own the process.
            return
        self._process.kill()  # It has no state to save.
        self._process.communicate()
        self._errors.close()


_shared: FreshProcess | None = None


def shared() -> FreshProcess:
    """The process that checks all exports of the current process; started if necessary."""
    global _shared
    if _shared is None or not _shared.is_alive:
        _shared = FreshProcess()
    return _shared
