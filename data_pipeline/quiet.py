"""Removes log messages of TensorFlow's native code from stderr, but keeps its errors."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys

# Log lines look like "2026-11-23 09:55:44.251647: I tensorflow/core/util/port.cc:113] text" and
# "I0000 00:00:1795427747.016242    7016 device_compiler.h:186] text".
_HEAD = rb"(?:\d{4}-\d\d-\d\d [\d:.]+: %s |%s\d{4} [\d:.]+ +\d+ )\S+:\d+\] "
NOISE = re.compile(
    _HEAD % (b"[IW]", b"[IW]")
    # These warnings are shown, since they say why the GPU is not used.
    + rb"(?!.*(?:Cannot dlopen some GPU libraries|Could not load dynamic library))"
    # Lines without such a prefix, and errors that are false alarms.
    + rb"|(?:%s)?(?:WARNING: All log messages before absl::Init" % (_HEAD % (b"[EF]", b"[EF]"))
    + rb"|To enable the following instructions: |oneDNN supports DT_\w+ only on platforms with"
    rb"|Unable to register cu\w+ factory|SetPriority unimplemented for this stream"
    rb"|failed call to cuInit: .*(?:UNKNOWN ERROR \(303\)|CUDA_ERROR_NO_DEVICE))"
)
_PROGRAM = re.compile(r"(-\w*m)?(albert_tf|data_pipeline|export|benchmarks|demo|experiments)\.")


def prepare_if_program() -> None:
    """For a package's `__init__`: calls `prepare_program` in `python -m albert_tf.describe`."""
    # argv is ["-m", *arguments] only while Python imports the packages of such a program; argv[0]
    # differs in notebooks, -c and pytest. In orig_argv, the module's name precedes the arguments.
    if sys.argv[:1] == ["-m"] and _PROGRAM.match("".join(sys.orig_argv[-len(sys.argv) :][:1])):
        prepare_program()


def prepare_program() -> None:
    """Calls `quiet`, and makes Ctrl-C print a single line, even during the import of TensorFlow."""
    sys.excepthook = lambda kind, *rest: (
        print("interrupted", file=sys.stderr)
        if issubclass(kind, KeyboardInterrupt)
        else sys.__excepthook__(kind, *rest)
    )
    quiet()


@functools.cache  # One filter per process.
def quiet() -> None:
    """Removes log messages of TensorFlow's native code from stderr, but keeps its errors and
    Python's own output. TF_CPP_MIN_LOG_LEVEL=0 in the environment shows everything.
    """
    # The native code respects the level only in part, and only if it is set before the import. It
    # writes to file descriptor 2, which is redirected to a separate process that runs this file, so
    # that the last messages of a crashing program are shown as well.
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1") == "0":
        return
    command = [sys.executable, "-I", "-S", __file__]
    try:
        shown = os.dup(2)
        # In its own session, Ctrl-C does not reach the filter, which ends with its last writer.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=shown, start_new_session=True
        )
    except OSError:  # No stderr, or no more processes: log messages are shown.
        return
    assert process.stdin is not None  # Because of PIPE.
    os.dup2(process.stdin.fileno(), 2)
    process.stdin.close()
    process.returncode = 0  # Nothing waits for the process.
    if sys.stderr is sys.__stderr__:  # A notebook's stderr does not write to the descriptor.
        sys.stderr = open(shown, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115


if __name__ == "__main__":
    rest = b""
    while block := os.read(0, 1 << 16):
        *lines, rest = (rest + block).split(b"\n")
        if kept := b"".join(line + b"\n" for line in lines if not NOISE.match(line)):
            os.write(2, kept)
    if rest and not NOISE.match(rest):
        os.write(2, rest)
