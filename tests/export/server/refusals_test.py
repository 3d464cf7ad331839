"""The largest request: it passes, a larger one is refused with the name of the flag."""

import grpc
import numpy as np
import pytest
from tensorflow_serving.apis import classification_pb2, prediction_service_pb2_grpc

from export.server.refusals import Limits, ServingError, listed
from tests.export.server.clients import PREDICT, call, refusal
from tests.export.server.conftest import serving

LIMITS = Limits(
    max_request_bytes=11, max_batch_size=3, max_text_bytes=4, max_row_values=6, max_input_values=16
)


@pytest.mark.parametrize(
    ("shape", "flag"),
    [
        ((), None),
        ((3,), None),
        ((3, 5), None),
        ((2, 2, 3), None),
        ((3, 6), "has 18 values; .* up to 16 .--max_input_values"),
        ((4,), "--max_batch_size"),
        ((1, 7), "--max_row_values"),
        ((0, 2**40, 2**40), "--max_row_values"),
        ((1, -1), "a negative dimension: .1, -1."),
    ],
)
def test_shapes(shape, flag):
    if flag is None:
        LIMITS.check_shape("x", shape)
    else:
        with pytest.raises(ServingError, match=flag):
            LIMITS.check_shape("x", shape)


def test_texts():
    LIMITS.check_strings("x", np.array([[b"abcd"], [b""]], object))
    with pytest.raises(ServingError, match="a text of 5 bytes; .* up to 4 .--max_text_bytes"):
        LIMITS.check_strings("x", np.array([b"a", b"abcde"], object))
    with pytest.raises(ServingError, match="have 12 bytes; .* up to 11 .--max_request_bytes"):
        LIMITS.check_strings("x", np.array([b"abcd"] * 3, object))


def test_names_as_in_a_sentence():
    assert listed(["b", "a"]) == "a, b"
    assert listed(["k" * 1000]) == "k" * 400 + "..."


MANY = 1_000_000


@pytest.fixture(scope="module")
def roomy(tiny):
    """A server with the limits that it has by default, over the wire."""
    with serving(tiny, Limits()) as running:
        yield running


def check_right_request(running):
    status, answer = call(running, PREDICT, {"instances": ["abc"]})
    assert (status, answer["predictions"][0]["scores"]) == (200, [7.0, 3.0])


@pytest.mark.parametrize(
    ("body", "element", "part"),
    [
        ('{"instances": [MANY]}', '""', "has 1000000 rows"),
        ('{"inputs": [MANY]}', "{}", "should hold strings"),
        ('{"signature_name": "words", "instances": [[MANY]]}', '""', "has 1000000 values in a row"),
    ],
)
def test_a_million_of_nothing_over_rest(roomy, body, element, part):
    """Within the limit of a body, as each takes three bytes."""
    body = body.replace("MANY", ",".join([element] * MANY)).encode()
    assert len(body) < roomy.store.limits.max_request_bytes
    status, answer = call(roomy, PREDICT, body, 60)
    assert status == 400 and part in answer["error"] and len(answer["error"]) < 500
    check_right_request(roomy)


def test_a_million_examples_over_grpc(roomy):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name, request.model_spec.signature_name = "tiny", "classify"
    for _ in range(MANY):
        request.input.example_list.examples.add()
    with grpc.insecure_channel(roomy.grpc) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        code, details = refusal(stub.Classify, request)
    assert code == "INVALID_ARGUMENT" and "has 1000000 rows" in details
    check_right_request(roomy)
