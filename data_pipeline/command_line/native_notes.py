"""A filter from stdin to stderr that drops the notes of TensorFlow's native code; see quiet.py."""

from __future__ import annotations

import os
import re

# 2026-11-23 09:55:44.251647: I tensorflow/core/util/port.cc:113] text
# I0000 00:00:1795427747.016242    7016 device_compiler.h:186] text
_LINE = re.compile(
    rb"(?:\d{4}-\d\d-\d\d [\d:.]+: (?P<old>[IWEF]) |(?P<new>[IWEF])\d{4} [\d:.]+ +\d+ )"
    rb"\S+:\d+\] (?P<text>.*)"
)
# Lines without a head of their own, and errors that are false alarms.
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


def main() -> None:
    """Copies stdin to stderr without the notes, until the last writer has closed its end."""
    rest = b""
    while block := os.read(0, 1 << 16):
        *lines, rest = (rest + block).split(b"\n")
        kept = b"".join(line + b"\n" for line in lines if not is_noise(line))
        if kept:
            os.write(2, kept)
    if rest and not is_noise(rest):
        os.write(2, rest)


if __name__ == "__main__":
    main()
