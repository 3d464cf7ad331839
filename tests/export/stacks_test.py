"""What is exported with one TensorFlow loads and answers with the other that is supported."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from export.client import predict_saved_model
from export.fresh_process import FreshProcess
from export.probes import Probe, text_array
from tests.export.conftest import rows

ROOT = Path(__file__).parents[2]
VENVS = {(3, 11): ".venv-3.11", (3, 12): ".venv-3.12"}
OTHERS = [
    ROOT / name / "bin" / "python" for key, name in VENVS.items() if key != sys.version_info[:2]
]
TEXTS = ["the cat", "Café in 2010, 3.0, of paris"]
# Task -> what is asked by text.
ASKED = {
    "classifier": {"text": text_array(TEXTS)},
    "masked_lm": {"text": text_array(["the [MASK] of", "a"])},
    "question_answering": {"question": text_array(["who", "Café?"]), "context": text_array(TEXTS)},
    "multiple_choice": {
        "context": text_array(TEXTS),
        "question": text_array(["_", "who"]),
        "options": text_array(["a cat", "a dog", "paris", "1,000"]).reshape(2, 2),
    },
    "tagging": {"text": text_array(TEXTS)},
    "regression": {"text": text_array(TEXTS)},
    "embedding": {"text": text_array(TEXTS)},
    "replaced_tokens": {"text": text_array(TEXTS)},
    "encoder": dict.fromkeys(
        ("input_word_ids", "input_mask", "input_type_ids"), np.ones([2, 8], np.int32)
    ),
    "preprocessor": {"text": text_array(TEXTS)},
}


@pytest.fixture(scope="module")
def other_stack():
    """A process of the other environment; it has this project, and packages of its own."""
    found = [python for python in OTHERS if python.exists()]
    if len(OTHERS) == len(VENVS) or not found:
        message = (
            f"ONE STACK ONLY: no graph crosses over. `make install PYTHON=...` makes {OTHERS[0]}"
        )
        warnings.warn(message, stacklevel=1)
        pytest.skip(message)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(found[0]))
        patch.setattr(sys, "path", [str(ROOT)])
        process = FreshProcess()
    yield process
    process.close()


@pytest.mark.parametrize("task", rows(ASKED, "question_answering"))
def test_answers_are_the_same_there(exports, other_stack, task):
    answer = predict_saved_model(exports.base(task), ASKED[task])
    floats = {name: value for name, value in answer.items() if value.dtype == np.float32}
    rest = {name: value for name, value in answer.items() if name not in floats}
    # Of answers whose scores differ by rounding either may be the better one.
    expected = {**floats, **({} if task == "question_answering" else rest)}
    assert expected
    probe = Probe("serving_default", ASKED[task], expected)
    found = other_stack.check(exports.paths[task], [probe], 1e-5)
    assert found["max_difference"] <= 1e-5
    assert found["signatures"] == exports.results[task].signatures
