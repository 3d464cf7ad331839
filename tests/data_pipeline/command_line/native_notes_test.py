"""Notes of native code are told from errors, line by line of what arrives in pieces."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from data_pipeline.command_line import native_notes
from data_pipeline.command_line.native_notes import is_noise

OLD, NEW = b"2026-11-23 09:55:44.251647: ", b"0000 00:00:1795427747.016242    7016 "


@pytest.mark.parametrize(
    "line, expected",
    [
        (OLD + b"I tensorflow/core/util/port.cc:113] oneDNN custom operations are on.", True),
        (OLD + b"W tensorflow/core/util/port.cc:113] Something is slow.", True),
        (OLD + b"E tensorflow/core/util/port.cc:113] Something broke.", False),
        (OLD + b"F tensorflow/core/util/port.cc:113] Check failed.", False),
        (OLD + b"E xla/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting", True),
        (OLD + b"W gpu_device.cc:1960] Cannot dlopen some GPU libraries. Please make sure", False),
        (OLD + b"W dso_loader.cc:64] Could not load dynamic library 'libcudart.so'", False),
        (b"I" + NEW + b"device_compiler.h:186] Compiled cluster using XLA!", True),
        (b"E" + NEW + b"cuda_platform.cc:52] failed call to cuInit: UNKNOWN ERROR (303)", True),
        (b"E" + NEW + b"cuda_platform.cc:52] failed call to cuInit: CUDA_ERROR_NO_DEVICE", True),
        (b"E" + NEW + b"cuda_platform.cc:52] failed call to cuInit: OUT_OF_MEMORY", False),
        (b"WARNING: All log messages before absl::InitializeLog() is called", True),
        (b"To enable the following instructions: AVX2, rebuild TensorFlow", True),
        (b"Please read: To enable the following instructions: AVX2", False),
        (b"Fatal Python error: Segmentation fault", False),
        (b"I think that this is a sentence.", False),
        (b"", False),
    ],
)
def test_notes_and_errors(line, expected):
    assert is_noise(line) is expected


@pytest.fixture
def filtered(monkeypatch):
    """Pieces that arrive on stdin -> what main writes to stderr."""

    def run(*pieces: bytes) -> list[bytes]:
        arriving, written = iter([*pieces, b""]), []

        def read(file: int, size: int) -> bytes:
            assert file == 0 and size == 1 << 16
            return next(arriving)

        def write(file: int, content: bytes) -> None:
            assert file == 2
            written.append(content)

        monkeypatch.setattr(native_notes, "os", SimpleNamespace(read=read, write=write))
        native_notes.main()
        return written

    return run


def test_lines_pass_whole_whatever_the_pieces(filtered):
    note = OLD + b"I port.cc:113] on.\n"
    assert filtered(b"one\ntw", b"o\n" + note[:30], note[30:], b"last") == [
        b"one\n",
        b"two\n",
        b"last",
    ]
    assert filtered(note, note[:-1]) == []
    assert filtered(b"a\n" + note + b"b\n") == [b"a\nb\n"]
    assert filtered() == []
