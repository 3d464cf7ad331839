"""Of TensorFlow's native code nothing is seen but errors, in programs and after the call."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from data_pipeline.quiet import NOISE

ROOT = Path(__file__).parents[2]
OLD, NEW = "2026-11-23 09:55:44.251647: ", "0000 00:00:1795427747.016242    7016 "
NOTES = [
    f"{OLD}I tensorflow/core/util/port.cc:113] oneDNN custom operations are on. You may see",
    f"{OLD}E external/local_xla/xla/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting",
    f"{OLD}W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find",
    f"{OLD}E external/xla/executor.h:177] SetPriority unimplemented for this stream.",
    f"I{NEW}device_compiler.h:186] Compiled cluster using XLA!  This line is logged at most once",
    f"E{NEW}cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call to "
    "cuInit: UNKNOWN ERROR (303)",
    f"E{NEW}cuda_platform.cc:52] failed call to cuInit: CUDA_ERROR_NO_DEVICE",
    f"E{NEW}util.cc:131] oneDNN supports DT_INT64 only on platforms with AVX-512.",
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "To enable the following instructions: AVX2 AVX512F, in other operations, rebuild TensorFlow",
]
ERRORS = [
    f"{OLD}E tensorflow/core/framework/op.cc:1] Something broke.",
    f"{OLD}F tensorflow/core/framework/tensor.cc:1] Check failed: dtype() == expected_dtype",
    f"{OLD}W tensorflow/core/gpu/gpu_device.cc:1960] Cannot dlopen some GPU libraries. Please make",
    f"{OLD}W dso_loader.cc:64] Could not load dynamic library 'libcudart.so'",
    f"E{NEW}cuda_platform.cc:52] failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "Fatal Python error: Segmentation fault",
    "Please read: To enable the following instructions: AVX2",
    "I think that this is a sentence.",
    "",
]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs Python as a user does, without what tests set for themselves."""
    inherited = {key: value for key, value in os.environ.items() if key != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def writing(tmp_path) -> str:
    """A PYTHONPATH with a stand-in for TensorFlow, which writes while it is imported."""
    text = "\n".join([*NOTES, *ERRORS, ""])
    (tmp_path / "tensorflow.py").write_text(
        f"import os, sys\nos.write(2, {text.encode()!r})\nsys.exit()\n"
    )
    return f"{tmp_path}{os.pathsep}{ROOT}"


def native_lines(text: str) -> list[str]:
    return re.findall(r".*\.(?:cc|h|py):\d+\].*|.*InitializeLog.*|To enable.*", text)


def test_notes_are_told_from_errors():
    assert [note for note in NOTES if not NOISE.match(note.encode())] == []
    assert [error for error in ERRORS if NOISE.match(error.encode())] == []


def test_lines_pass_whole_whatever_the_pieces():
    """The filter by itself: lines that arrive in parts, and a last one without an end."""
    command = [sys.executable, str(ROOT / "data_pipeline" / "quiet.py")]
    for pieces, expected in (
        (["one\ntw", f"o\n{NOTES[0][:30]}", f"{NOTES[0][30:]}\n", "last"], "one\ntwo\nlast"),
        ([f"{NOTES[0]}\n", NOTES[1]], ""),
        ([f"a\n{NOTES[0]}\nb\n"], "a\nb\n"),
        ([], ""),
    ):
        pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as process:
            for piece in pieces:
                process.stdin.write(piece.encode())
                process.stdin.flush()
            assert process.communicate()[1].decode() == expected


WORK = """
import os, sys, tempfile
import tensorflow as tf

tf.config.list_logical_devices()
tf.function(lambda x: x * 2 + 1, jit_compile=True)(tf.ones(3))
saver = tf.train.Checkpoint(v=tf.Variable(1.0))
options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
tf.train.CheckpointManager(saver, tempfile.mkdtemp(), 3).save(options=options)
saver.sync()
print("from Python", file=sys.stderr)
os.write(2, b"from native code\\nand its last words")
os.abort()
"""


def test_start_compilation_and_checkpoints_are_silent_after_the_call_and_a_crash_is_not():
    result = run("-c", f"import albert_tf; albert_tf.quiet(); albert_tf.quiet(){WORK}")
    assert result.returncode == -signal.SIGABRT
    # Python's stacks may come in between, even within a line: the filter is a process of its own.
    for text in ("from Python", "from native code", "and its last words"):
        assert text in result.stderr
    assert native_lines(result.stderr) == []


def test_without_the_call_nothing_is_redirected():
    """Neither by the import nor where arguments look like those of a program."""
    code = f"import albert_tf, data_pipeline, export{WORK}"
    result = run("-c", code, "-m", "albert_tf.describe")
    assert native_lines(result.stderr) != []


@pytest.mark.parametrize("level, shown", [("0", NOTES + ERRORS), ("1", ERRORS), ("3", ERRORS)])
@pytest.mark.parametrize("is_program", [True, False])
def test_all_is_shown_on_demand(writing, level, shown, is_program):
    code = "import albert_tf; albert_tf.quiet(); import tensorflow"
    command = ("-m", "albert_tf.run_pretraining", "--help") if is_program else ("-c", code)
    result = run(*command, TF_CPP_MIN_LOG_LEVEL=level, PYTHONPATH=writing)
    assert result.stderr.splitlines() == shown


def test_the_quickstart_asks_for_quiet_before_tensorflow_is_imported(writing):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", readme, re.M | re.S)[1]
    result = run("-c", code, PYTHONPATH=writing)
    assert result.stderr.splitlines() == ERRORS


def test_ctrl_c_while_a_program_is_imported(tmp_path):
    """A stand-in for TensorFlow is interrupted as TensorFlow would be."""
    (tmp_path / "tensorflow.py").write_text("raise KeyboardInterrupt")
    found = run("-m", "albert_tf.run_pretraining", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (found.returncode, found.stderr) == (-signal.SIGINT, "interrupted\n")


def test_what_a_notebook_shows_stays():
    """There, `sys.stderr` does not lead to the file descriptor, and it is not replaced."""
    code = "import io, sys; sys.stderr = own = io.StringIO(); import albert_tf; albert_tf.quiet()"
    result = run("-c", f"{code}; assert sys.stderr is own")
    assert result.returncode == 0 and result.stderr == ""


def test_a_user_error_is_one_line():
    result = run("-m", "data_pipeline.inspect_records", "--data=/nowhere")
    assert result.returncode == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "inspect_records.py: error: --data=/nowhere: " in line


def test_a_program_by_its_short_name():
    code = "import sys; from albert_tf.commands import main; main()"
    result = run("-c", code, "describe", "--preset=albert-base-v2")
    assert result.returncode == 0 and result.stderr == ""


def test_tensorflow_is_not_loaded_where_it_is_not_needed():
    """An input that does not exist: one line, and the modules that were imported."""
    for program in ("create_pretraining_data", "train_vocabulary"):
        options = ["--input=nofile", "--output_dir=nowhere"]
        options += ["--vocab_file=nofile"] if program == "create_pretraining_data" else []
        result = run("-X", "importtime", "-m", f"data_pipeline.{program}", *options)
        messages = [line for line in result.stderr.splitlines() if "import time:" not in line]
        assert result.returncode == 2 and len(messages) == 1 and "nofile" in messages[0]
        assert "tensorflow" not in result.stderr
