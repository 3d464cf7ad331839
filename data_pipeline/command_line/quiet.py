"""Keeps the notes of TensorFlow's native code off the terminal, and lets its errors through.

TensorFlow's C++ code writes to the file descriptor of stderr, some of it whatever
TF_CPP_MIN_LOG_LEVEL says, and some of it while it is imported. From the import on, that descriptor
leads to a filter: this file, run as a process of its own, so that the last words of a program that
crashes arrive as well. What Python writes to `sys.stderr` goes past it.

TF_CPP_MIN_LOG_LEVEL=0 shows everything.
"""

from __future__ import annotations

import importlib.abc
import os
import re
import subprocess
import sys

# 2026-11-23 09:55:44.251647: I tensorflow/core/util/port.cc:113] text
# I0000 00:00:1795427747.016242    7016 device_compiler.h:186] text
_LINE = re.compile(
    rb"(?:\d{4}-\d\d-\d\d [\d:.]+: (?P<old>[IWEF]) |(?P<new>[IWEF])\d{4} [\d:.]+ +\d+ )"
    rb"\S+:\d+\] (?P<text>.*)"
)
# Lines without a head of their own, and errors that are none.
_NOISE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog"
    rb"|To enable the following instructions: "
    rb"|Unable to register cu\w+ factory"
    rb"|failed call to cuInit: .*(?:UNKNOWN ERROR \(303\)|CUDA_ERROR_NO_DEVICE)"
    rb"|oneDNN supports DT_\w+ only on platforms with"
    rb"|SetPriority unimplemented for this stream"
)
# The warnings that tell a user why the GPU is not used.
_WANTED = re.compile(rb"Cannot dlopen some GPU libraries|Could not load dynamic library")


def is_noise(line: bytes) -> bool:
    """Whether a line of native code is a note: informative, a warning, or a known false alarm."""
    head = _LINE.match(line)
    if not head:
        return bool(_NOISE.match(line))
    is_note = (head["old"] or head["new"]) in (b"I", b"W")
    return not _WANTED.search(line) if is_note else bool(_NOISE.match(head["text"]))


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
    """Native code writes to the filter from now on, Python to where stderr led so far."""
    command = [sys.executable, "-I", "-S", __file__]
    try:
        terminal = os.dup(2)
        # A session of its own, so that Ctrl-C does not reach it: it ends when nobody writes any
        # more.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=terminal, start_new_session=True
        )
    except OSError:  # No stderr, or no more processes: the notes are shown.
        return
    sys.stderr.flush()
    os.dup2(process.stdin.fileno(), 2)
    process.stdin.close()
    process.returncode = 0  # Nobody waits for it.
    sys.stderr = open(terminal, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115


def _filter() -> None:
    rest = b""
    while block := os.read(0, 1 << 16):
        *lines, rest = (rest + block).split(b"\n")
        kept = b"".join(line + b"\n" for line in lines if not is_noise(line))
        if kept:
            os.write(2, kept)
    if rest and not is_noise(rest):
        os.write(2, rest)


if __name__ == "__main__":
    _filter()
