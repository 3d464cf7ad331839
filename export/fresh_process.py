"""Another Python process that loads SavedModels and asks them.

It shares nothing with the process that made them: no Keras model, no function that was traced, no
table or tokenizer that was made. What answers there will answer in any server.
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
_LAST_WORDS = 300  # Characters of stderr that are shown.


class FreshProcessError(Exception):
    """The finding of the process, or its end; the message is for the user."""


class FreshProcess:
    """The other process, which is started at once and imports TensorFlow meanwhile."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        # Not a pipe: the process would wait when it is full, since only its last words are read.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `close`)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            # The exporting process may have taken all memory of the GPU.
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
        """Whether it can be asked; by a fork of the process that started it, it cannot."""
        return self._owner == os.getpid() and self._process.poll() is None

    def check(self, directory: str, probes: Sequence[Probe], tolerance: float) -> dict[str, Any]:
        """The findings of `export.check_export.reply` about a SavedModel that is loaded and asked
        there; a FreshProcessError if an answer differs, it does not load, or the process ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # As they were asked for.
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
        """Exit code, and last words."""
        code = self._process.wait()
        self._errors.seek(0)
        words = " ".join(self._errors.read().decode(errors="replace").split())
        return f"exit code {code}, {words[-_LAST_WORDS:] or 'without a word'}"

    def close(self) -> None:
        """Ends the process, and waits until it has ended."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():  # A fork copies this object, but it is not its process.
            return
        self._process.kill()  # It holds nothing that could be lost.
        self._process.communicate()
        self._errors.close()


_shared: FreshProcess | None = None


def shared() -> FreshProcess:
    """The process that checks all exports of this one; started here unless it runs already."""
    global _shared
    if _shared is None or not _shared.is_alive:
        _shared = FreshProcess()
    return _shared
