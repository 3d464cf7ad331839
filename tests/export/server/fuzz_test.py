"""Whatever comes in: a refusal in one sentence, and correct requests among it are always right."""

import json
import random
import re

import grpc
import pytest
from tensorflow_serving.apis import predict_pb2

from tests.export.server import right_requests
from tests.export.server.clients import call

SERVICE = "/tensorflow.serving.PredictionService"
# A client that asks too often, or too much, is told so by gRPC itself.
REFUSALS = {"INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED"}
ATOMS = (None, True, -1, 0, 3, 2**31, 2**63, 2**70, -1e400, 1e39, 0.5, "", "abc", "é🤖", "\ud800",
         "\0", "a" * 3000, {"b64": "YWJj"}, {"b64": "x"}, {"b64": 3}, {}, [], [[]])  # fmt: skip
KEYS = ("signature_name", "instances", "inputs", "examples", "context", "text", "ids", "mask")


def value(rng, depth=3):
    """A JSON value of any kind."""
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        return rng.choice(ATOMS)
    if kind < 0.7:
        return [value(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 3, 70)))]
    return {rng.choice(KEYS): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def body(rng):
    """The bytes of a body: values where others belong, cut, changed, or nested."""
    made = {"instances": [value(rng) for _ in range(rng.randrange(1, 4))]}
    if rng.random() < 0.7:
        made = {rng.choice(KEYS): value(rng) for _ in range(rng.randrange(1, 4))}
        made.setdefault("signature_name", rng.choice(("", "numbers", "classify", "regress", "x")))
    data = bytearray(json.dumps(made).encode())
    kind = rng.random()
    if kind < 0.1:
        del data[rng.randrange(len(data)) :]
    elif kind < 0.2:
        data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind < 0.25:
        data = bytearray(b"[" * rng.choice((50, 990, 1010, 50_000)))
    return bytes(data[:190_000])  # A larger one is refused unread: see listeners_test.py.


def message(rng):
    """(method, bytes) of a call: a request with strange parts, perhaps changed afterwards."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = rng.choice(("tiny", "tiny", "tiny", "", "x"))
    request.model_spec.signature_name = rng.choice(("", "numbers", "classify", "regress", "y"))
    request.model_spec.version_label = rng.choice(("", "", "", "stable", "z"))
    for name in rng.sample(("text", "ids", "mask", "inputs", "w"), rng.randrange(4)):
        tensor = request.inputs[name]
        tensor.dtype = rng.choice((0, 1, 3, 7, 7, 7, 9, 14, 20, 21, 101, 999))
        tensor.tensor_shape.unknown_rank = rng.random() < 0.1
        for _ in range(rng.choice((0, 1, 2, 300))):
            tensor.tensor_shape.dim.add(size=rng.choice((-1, 0, 1, 2, 64, 65, 2**18, 2**31, 2**62)))
        tensor.string_val.extend(rng.choice(([], [b"a"], [b"\xff", b"b" * 3000])))
        tensor.int_val.extend(rng.choice(([], [1], [2**31 - 1, -1])))
        tensor.tensor_content = rng.choice((b"", b"", b"1234", b"12345"))
    data = bytearray(request.SerializeToString())
    if data and rng.random() < 0.3:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return rng.choice(("Predict", "Predict", "Classify", "Regress", "MultiInference",
                       "GetModelMetadata", "Nothing")), bytes(data)  # fmt: skip


def check_rest(running, rng):
    verb = rng.choice(("predict", "predict", "classify", "regress", "explain", ""))
    where = rng.choice(("tiny", "tiny", "tiny/versions/1", "tiny/labels/stable", "x", "%00", ".."))
    status, answer = call(running, f"/v1/models/{where}:{verb}", body(rng))
    if status != 200:
        assert 400 <= status < 500 and set(answer) == {"error"}
        assert 10 < len(answer["error"]) < 1000 and "Traceback" not in answer["error"]
    return status == 200


def check_grpc(channel, rng):
    method, data = message(rng)
    try:
        channel.unary_unary(f"{SERVICE}/{method}")(data, timeout=20)
    except grpc.RpcError as error:
        assert error.code().name in REFUSALS, (error.code(), error.details())
        assert "Exception" not in error.details() and "Traceback" not in error.details()
        return False
    return True


def check_right(running, channel, rng, is_rest):
    """A correct request: the answer was computed beforehand."""
    if is_rest:
        path, sent, expected = right_requests.rest(rng)
        assert call(running, path, sent) == (200, expected), (path, sent)
    else:
        method, sent, check = right_requests.rpc(rng)
        check(channel.unary_unary(f"{SERVICE}/{method}")(sent, timeout=20))


def resident(running):
    """The memory of this process, in which the server runs, in bytes."""
    return int(float(re.search("resident_memory_bytes ([0-9].*)", running.monitor.text())[1]))


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_generated_requests(running, count):
    """A quarter of them are correct ones, among all others."""
    rng = random.Random(count)
    with grpc.insecure_channel(running.grpc) as channel:
        for is_rest in (True, False):
            check_right(running, channel, rng, is_rest)
        before, right, accepted = resident(running), 0, 0
        for number in range(count):
            is_rest = bool(number % 2)
            if rng.random() < 0.25:
                check_right(running, channel, rng, is_rest)
                right += 1
            else:
                accepted += check_rest(running, rng) if is_rest else check_grpc(channel, rng)
        grown = resident(running) - before
    assert right > 0.2 * count and accepted < 0.1 * count
    assert grown < 200 << 20
    text = running.monitor.text()
    assert 'status="INTERNAL"' not in text
    print(
        f"\n{count} requests: {right} correct ones answered as expected, {accepted} of the others "
        f"accepted, {grown >> 20} MB more memory"
    )
