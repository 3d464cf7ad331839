"""Of TensorFlow's native code nothing is seen but errors, on the import and afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from data_pipeline.command_line.native_notes import is_noise

ROOT = Path(__file__).parents[3]
OLD, NEW = "2026-11-23 09:55:44.251647: ", "0000 00:00:1795427747.016242    7016 "
NOTES = [
    f"{OLD}I tensorflow/core/util/port.cc:113] oneDNN custom operations are on. You may see",
    f"{OLD}E external/local_xla/xla/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting",
    f"{OLD}W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find",
    f"{OLD}E external/xla/executor.h:177] SetPriority unimplemented for this stream.",
    f"I{NEW}device_compiler.h:186] Compiled cluster using XLA!  This line is logged at most once",
    f"E{NEW}cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call to "
    "cuInit: UNKNOWN ERROR (303)",
    f"E{NEW}util.cc:131] oneDNN supports DT_INT64 only on platforms with AVX-512.",
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "To enable the following instructions: AVX2 AVX512F, in other operations, rebuild TensorFlow",
]
ERRORS = [
    f"{OLD}E tensorflow/core/framework/op.cc:1] Something broke.",
    f"{OLD}F tensorflow/core/framework/tensor.cc:1] Check failed: dtype() == expected_dtype",
    f"{OLD}W tensorflow/core/gpu/gpu_device.cc:1960] Cannot dlopen some GPU libraries",
    f"E{NEW}cuda_platform.cc:52] failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "Fatal Python error: Segmentation fault",
    "",
]


def test_notes_are_told_from_errors():
    assert [note for note in NOTES if not is_noise(note.encode())] == []
    assert [error for error in ERRORS if is_noise(error.encode())] == []


PROGRAM = """
from data_pipeline.command_line import flags, run_binary
import os, sys, tempfile
import tensorflow as tf

def main():
    tf.config.list_logical_devices()
    tf.function(lambda x: x * 2 + 1, jit_compile=True)(tf.ones(3))
    saver = tf.train.Checkpoint(v=tf.Variable(1.0))
    options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
    tf.train.CheckpointManager(saver, tempfile.mkdtemp(), 3).save(options=options)
    saver.sync()
    print("from Python", file=sys.stderr)
    os.write(2, b"from native code\\nand its last words")
    os.abort()

run_binary(main)
"""


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess:
    """Runs a program as a user does, without what tests set for themselves."""
    inherited = {key: value for key, value in os.environ.items() if key != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(
        command, cwd=ROOT, env={**inherited, **environment}, capture_output=True, text=True
    )


def test_start_compilation_and_checkpoints_are_silent_and_a_crash_is_not():
    result = run([sys.executable, "-c", PROGRAM])
    assert result.returncode == -signal.SIGABRT
    # Python's stacks may come in between, even within a line: the filter is a process of its own.
    for text in ("from Python", "from native code", "and its last words"):
        assert text in result.stderr
    assert not re.search(r"\.(cc|h|py):\d+\]|InitializeLog", result.stderr), result.stderr


@pytest.mark.parametrize("level, shown", [("0", NOTES + ERRORS), ("1", ERRORS), ("3", ERRORS)])
def test_all_is_shown_on_demand(tmp_path, level, shown):
    """A stand-in for TensorFlow writes while it is imported."""
    text = "\n".join([*NOTES, *ERRORS, ""])
    (tmp_path / "tensorflow.py").write_text(f"import os\nos.write(2, {text.encode()!r})\n")
    program = "import data_pipeline.command_line, tensorflow"
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    result = run([sys.executable, "-c", program], TF_CPP_MIN_LOG_LEVEL=level, PYTHONPATH=path)
    assert result.stderr.splitlines() == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("albert_tf.convert", "--input=/nowhere", "--format=google", "--output=new"),
        ("data_pipeline.inspect_records", "--data=/nowhere"),
        ("export.predict", "--model=/nowhere", "--text=A text."),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_user_error_is_one_line(arguments):
    result = run([sys.executable, "-m", *arguments])
    assert result.returncode == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert f"{arguments[0].partition('.')[2]}.py: error: --{arguments[1][2:]}: " in line


def test_tensorflow_is_not_loaded_where_it_is_not_needed():
    """An input that does not exist: one line, and the modules that were imported."""
    for program in ("create_pretraining_data", "train_vocabulary"):
        options = ["--input=nofile", "--output_dir=nowhere"]
        options += ["--vocab_file=nofile"] if program == "create_pretraining_data" else []
        result = run(
            [sys.executable, "-X", "importtime", "-m", f"data_pipeline.{program}", *options]
        )
        messages = [line for line in result.stderr.splitlines() if "import time:" not in line]
        assert result.returncode == 2 and len(messages) == 1 and "nofile" in messages[0]
        assert "tensorflow" not in result.stderr
