"""Keeps the notes of TensorFlow's native code off the terminal, and lets its errors through.

TensorFlow's C++ code writes to the file descriptor of stderr, some of it whatever
TF_CPP_MIN_LOG_LEVEL says, and some of it while it is imported. From the import on, that descriptor
leads to native_notes.py, a process of its own, so that the last words of a program that crashes
arrive as well. What Python writes to `sys.stderr` goes past it.

TF_CPP_MIN_LOG_LEVEL=0 shows everything.
"""

from __future__ import annotations

import importlib.abc
import os
import subprocess
import sys
from pathlib import Path

_FILTER = Path(__file__).with_name("native_notes.py")


def watch() -> None:
    """Sets up the filter when TensorFlow is imported; does nothing when that has happened."""
    wants_all = os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0"
    if "tensorflow" in sys.modules or wants_all:
        return
    if not any(isinstance(finder, _BeforeTensorFlow) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeTensorFlow())


class _BeforeTensorFlow(importlib.abc.MetaPathFinder):
    """Finds no module; is asked first, and so learns when TensorFlow is about to be imported."""

    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow":
            sys.meta_path.remove(self)
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
            _divert()
        return None


def _divert() -> None:
    """Leads native code's stderr to the filter, and Python's to where stderr led so far."""
    command = [sys.executable, "-I", "-S", str(_FILTER)]
    try:
        terminal = os.dup(2)
        # A session of its own, so that Ctrl-C does not reach it: it ends when nobody writes any
        # more.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=terminal, start_new_session=True
        )
    except OSError:  # No stderr, or no more processes: the notes are shown.
        return
    assert process.stdin is not None  # As it was asked for.
    sys.stderr.flush()
    os.dup2(process.stdin.fileno(), 2)
    process.stdin.close()
    process.returncode = 0  # Nobody waits for it.
    sys.stderr = open(terminal, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
