"""Exports that take token ids alone: they load where there is no TensorFlow Text."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from export.client import predict_rows
from export.run_export import export_summary
from export.tasks import TASKS, export_model
from tests.export.conftest import EXPORTED, Made, assert_same_answer, rows
from tests.export.saved_model_test import CORE_OPS, ops_of
from tests.export.signatures.every_task_test import columns_of

BY_TOKENS = [task for task in TASKS if task != "preprocessor"]
FEW = ["classifier"]  # In `make test`: signatures lose their texts alike.
every_task = pytest.mark.parametrize("task", rows(BY_TOKENS, *FEW))
# Answers the requests of a file with SavedModels, and knows neither this project nor TF Text.
_ASK = """
import sys, numpy as np, tensorflow as tf
asked, answered = np.load(sys.argv[1]), {}
for task, path in zip(sys.argv[3::2], sys.argv[4::2]):
    for name, signature in tf.saved_model.load(path).signatures.items():
        inputs = signature.structured_input_signature[1]
        answer = signature(**{each: tf.constant(asked[task + "." + each]) for each in inputs})
        for output, value in answer.items():
            answered[".".join([task, name, output])] = value.numpy().astype(
                "S" if value.dtype == tf.string else value.dtype.as_numpy_dtype
            )
assert not {"tensorflow_text", "export", "albert_tf"} & set(sys.modules)
np.savez(sys.argv[2], **answered)
"""


@pytest.fixture(scope="module")
def alone(model_dirs, tmp_path_factory):
    """Task -> its export for token ids alone."""
    root = tmp_path_factory.mktemp("tokens")
    return Made(
        lambda task: export_model(
            model_dirs[EXPORTED[task]], str(root / task), task, inputs="tokens"
        )
    )


@pytest.mark.parametrize("tasks", [FEW, pytest.param(BY_TOKENS, marks=pytest.mark.table)])
def test_a_process_without_tensorflow_text_answers_as_before(
    exports, alone, answers, tmp_path, tasks
):
    asked, expected = {}, {}
    for task in tasks:
        columns = columns_of(exports, task, "tokens")
        asked |= {f"{task}.{name}": value.astype(np.int32) for name, value in columns.items()}
        for name, value in answers(task, "tokens", **columns).items():
            for signature in ("serving_default", "tokens"):
                expected[f"{task}.{signature}.{name}"] = value
    np.savez(tmp_path / "asked.npz", **asked)
    paths = [part for task in tasks for part in (task, alone[task].path)]
    files = [str(tmp_path / name) for name in ("asked.npz", "answered.npz")]
    subprocess.run([sys.executable, "-I", "-c", _ASK, *files, *paths], check=True)
    found = {
        name: value.astype(object if value.dtype.kind == "S" else value.dtype)
        for name, value in np.load(files[1]).items()
    }
    assert_same_answer(found, expected)


@every_task
def test_only_operations_of_tensorflow_itself(exports, alone, task):
    """And the printed request is answered."""
    assert not sorted(ops_of(alone[task].path) - set(CORE_OPS.split()))
    tokens = exports.results[task].signatures["tokens"]
    assert alone[task].signatures == {"serving_default": tokens, "tokens": tokens}
    assert alone[task].warmup_requests == 0
    if task != "encoder":
        command = export_summary(task, "out", alone[task])
        [row] = json.loads(re.search(r"curl -d '(.*)' ", command)[1])["instances"]
        assert predict_rows(alone[task].path, [row])


def test_a_preprocessor_takes_text(model_dirs, tmp_path, run_module):
    process = run_module(
        "export.run_export", f"--model_dir={model_dirs['pretrainer']}", "--inputs=tokens",
        f"--output_dir={tmp_path / 'out'}", "--task=preprocessor",
    )  # fmt: skip
    assert process.returncode == 2
    assert "--inputs=tokens: a preprocessor takes only text" in process.stderr
    assert not (tmp_path / "out").exists()
