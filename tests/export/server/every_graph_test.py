"""Strange requests to the graphs of all tasks: an answer, or a refusal in one sentence."""

import numpy as np
import pytest
import tensorflow as tf

from export.server.refusals import ServingError
from export.tasks import TASKS
from tests.export.conftest import rows

TEXTS = (b"the cat", b"", b"\xff\xfe", b"\x00", b" \t\n", b"[MASK] " * 60, b"a" * 5000)
NUMBERS = (0, 1, -1, 2, 7, 119, 120, 2**31 - 1)
SHAPES = ((2, 3), (1, 0), (0, 3), (2, 47), (2, 49), (1, 70))


def requests(specs):
    """Values by the names of the inputs: each strange one beside plain ones, and in every shape."""

    def make(spec, value, size):
        rank = spec.shape.rank
        shape = [size[0], *[3] * (rank - 2), *size[1:]][:rank] if rank > 1 else [size[0]]
        return np.full(shape, value, object if spec.dtype == tf.string else np.int32)

    plain = {name: b"the cat" if spec.dtype == tf.string else 0 for name, spec in specs.items()}
    for size in SHAPES:
        yield {name: make(spec, plain[name], size) for name, spec in specs.items()}
    for changed, spec in specs.items():
        for value in TEXTS if spec.dtype == tf.string else NUMBERS:
            values = {**plain, changed: value}
            yield {name: make(specs[name], each, (2, 5)) for name, each in values.items()}
        sizes = dict.fromkeys(specs, (2, 5)) | {changed: (1, 4)}
        yield {name: make(each, plain[name], sizes[name]) for name, each in specs.items()}


@pytest.mark.parametrize("task", rows(TASKS, "question_answering", "multiple_choice", "tagging"))
def test_an_answer_or_a_refusal(every_store, task):
    servable = every_store.get(task)
    answered = refused = 0
    for signature, definition in servable.signature_defs.items():
        specs = {
            name: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype))
            for name, info in definition.inputs.items()
        }
        for inputs in requests(specs):
            try:
                answer = servable.predict(signature, inputs)
            except ServingError as error:
                assert error.code == "INVALID_ARGUMENT", (signature, inputs, error.message)
                assert len(error.message) < 400 and "\n" not in error.message, error.message
                refused += 1
            else:
                rows = {value.shape[0] for value in answer.values()}
                assert rows == {len(next(iter(inputs.values())))}, (signature, inputs)
                answered += 1
    assert answered > 5 and (refused > 5 or task == "preprocessor"), (answered, refused)
