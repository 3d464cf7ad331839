"""The gRPC API, asked through tensorflow-serving-api's stock stubs."""

import re
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import wrappers_pb2
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    input_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from export.encoding import encode_batch
from export.probes import example_of
from export.server.grpc_service import serialized_examples, to_array
from export.server.refusals import Limits, ServingError
from tests.export.server.clients import predict_request, refusal, serving_grpc

TEXTS = ["the cat", "Café in 2010, 3.0"]
LIMITS = Limits(max_request_bytes=1000, max_batch_size=8, max_row_values=16)


@pytest.fixture(scope="module")
def channel(store):
    with serving_grpc(store) as port, grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def test_predict_equals_keras(stub, exports):
    inputs = encode_batch(exports.vocabulary, TEXTS, 48)
    logits = exports.models["classifier"](inputs, training=False)
    by_tokens = predict_request("topics", "tokens", inputs=inputs)
    by_tokens.model_spec.version.value = 1
    for message in (predict_request("topics", inputs={"text": TEXTS}), by_tokens):
        response = stub.Predict(message, 30)
        np.testing.assert_allclose(tf.make_ndarray(response.outputs["logits"]), logits, atol=1e-5)
        assert (response.model_spec.name, response.model_spec.version.value) == ("topics", 1)
    assert response.model_spec.signature_name == "tokens"
    assert set(response.outputs) == {"logits", "probabilities", "label", "label_id"}


def test_masked_lm_without_masks(stub):
    outputs = stub.Predict(predict_request("words"), 30).outputs
    assert tf.make_ndarray(outputs["top_pieces"]).shape == (1, 0, 5)
    assert outputs["top_pieces"].dtype == tf.string.as_datatype_enum


def test_metadata(stub):
    message = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    message.model_spec.name = "words"
    response = stub.GetModelMetadata(message, 30)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert set(signatures.signature_def) == {"serving_default", "tokens"}
    assert "top_pieces" in signatures.signature_def["serving_default"].outputs


@pytest.fixture(scope="module")
def tiny_channel(running):
    with grpc.insecure_channel(running.grpc) as opened:
        yield opened


@pytest.fixture(scope="module")
def tiny_stub(tiny_channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(tiny_channel)


@pytest.mark.parametrize(
    ("message", "code", "part"),
    [
        (predict_request("other"), "NOT_FOUND", "Served: tiny"),
        (predict_request(""), "INVALID_ARGUMENT", "model_spec.name is empty"),
        (predict_request(version=3), "NOT_FOUND", "version 1, 2 is"),
        (predict_request(version_label="new"), "NOT_FOUND", "It has: canary, gone, stable"),
        (predict_request(inputs={"t": ["a"]}), "INVALID_ARGUMENT", "inputs text; received t."),
        (predict_request(output_filter=["x"]), "INVALID_ARGUMENT", "output_filter names x"),
        (predict_request(output_filter=["label"] * 2), "INVALID_ARGUMENT", "an output twice"),
    ],
)
def test_bad_requests_get_a_status_and_a_sentence(tiny_stub, message, code, part):
    received, told = refusal(tiny_stub.Predict, message)
    assert received == code and part in told


def test_an_output_filter(tiny_stub):
    message = predict_request(output_filter=["label", "scores"])
    assert set(tiny_stub.Predict(message, 20).outputs) == {"label", "scores"}


@pytest.mark.parametrize("power", [18, 28, 40, 62])
def test_a_small_message_with_a_large_claim(tiny_stub, power):
    """33 bytes of which a server that believes them makes gigabytes."""
    request = predict_request()
    request.inputs["text"].tensor_shape.dim[0].size = 2**power
    start = time.monotonic()
    code, details = refusal(tiny_stub.Predict, request)
    assert code == "INVALID_ARGUMENT" and f"has {2**power} rows" in details
    assert time.monotonic() - start < 5


def test_messages_that_are_none_or_too_large(tiny_channel):
    send = tiny_channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    code, told = refusal(send, b"\xff" * 9)
    assert (code, told) == ("INVALID_ARGUMENT", "The message is not a PredictRequest.")
    assert refusal(send, b"a" * 200_001)[0] == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize(("label", "versions"), [("", [2, 1]), ("stable", [1])])
def test_status(tiny_channel, label, versions):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name, request.model_spec.version_label = "tiny", label
    status = model_service_pb2_grpc.ModelServiceStub(tiny_channel).GetModelStatus(request, 20)
    available = get_model_status_pb2.ModelVersionStatus.AVAILABLE
    assert [(row.version, row.state) for row in status.model_version_status] == [
        (version, available) for version in versions
    ]


def counted(running):
    """Number of calls of MultiInference that the server counted for its model."""
    labels = 'API="multiinference",entrypoint="GRPC",model_name="tiny"'
    found = re.findall(f"_latency_count{{{labels}}} (\\d+)", running.monitor.text())
    return int(found[0]) if found else 0


def test_multi_inference_is_one_call_of_one_model(running, tiny_stub):
    several = inference_pb2.MultiInferenceRequest()
    several.input.example_list.examples.append(example_of({"text": "abc"}))
    assert "the same model" in refusal(tiny_stub.MultiInference, several)[1]
    for method in ("classify", "regress"):
        task = several.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = "tiny", method
    before = counted(running)
    _, second = tiny_stub.MultiInference(several, 20).results
    assert counted(running) == before + 1 and second.model_spec.version.value == 2
    several.tasks[1].model_spec.signature_name = "classify"
    assert "different signatures" in refusal(tiny_stub.MultiInference, several)[1]
    several.tasks[1].model_spec.signature_name = "regress"
    several.tasks[1].method_name = "tensorflow/serving/predict"
    assert "method_name of a task" in refusal(tiny_stub.MultiInference, several)[1]


def test_health_is_grpcs_own_protocol(tiny_channel):
    check = tiny_channel.unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"") == b"\x08\x01"  # HealthCheckResponse(status=SERVING).
    named = wrappers_pb2.StringValue(value="tensorflow.serving.ModelService").SerializeToString()
    assert check(named) == b"\x08\x01"
    other = wrappers_pb2.StringValue(value="x").SerializeToString()
    assert refusal(check, other)[0] == "NOT_FOUND"


def test_reloading_a_config_is_not_there(tiny_channel):
    """As export/serving/README.md says."""
    models = model_service_pb2_grpc.ModelServiceStub(tiny_channel)
    request = model_management_pb2.ReloadConfigRequest()
    assert refusal(models.HandleReloadConfigRequest, request)[0] == "UNIMPLEMENTED"


def info(dtype):
    return meta_graph_pb2.TensorInfo(dtype=dtype.as_datatype_enum)


def claim(dtype, *shape, **fields):
    """A proto with a shape of its own choice."""
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum, **fields)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1, 2], [3, 4]], np.int32),
        np.array([1.5, 2], np.float32),
        np.array([True, False]),
        np.array([b"a", b"b"], object),
        np.zeros([0], np.int32),
        np.array(3, np.int64),
    ],
)
def test_what_clients_make_is_taken(value):
    proto = tf.make_tensor_proto(value)
    array = to_array("x", proto, info(tf.as_dtype(proto.dtype)), LIMITS)
    np.testing.assert_array_equal(array, value)


def test_a_last_value_that_repeats_may_be_left_out():
    proto = claim(tf.int32, 2, 3, int_val=[7, 8])
    assert to_array("x", proto, info(tf.int32), LIMITS).tolist() == [[7, 8, 8], [8, 8, 8]]
    proto = claim(tf.string, 3, string_val=[b"a"])
    assert to_array("x", proto, info(tf.string), LIMITS).tolist() == [b"a"] * 3


@pytest.mark.parametrize(
    ("dtype", "proto", "part"),
    [
        (tf.string, claim(tf.string, 2**31, 2**31, string_val=[b"a"]), "rows"),
        (tf.string, claim(tf.string, 8, 2**62, string_val=[b"a"]), "values in a row"),
        (
            tf.string,
            claim(tf.string, *[2**62] * 1000, string_val=[b"a"]),
            "1000 dimensions; the maximum is 8",
        ),
        (tf.string, claim(tf.string, -1, string_val=[b"a"]), "negative dimension"),
        (tf.string, claim(tf.string, 2, string_val=[b"a"] * 3), r"its shape \[2\] of string"),
        (tf.string, claim(tf.string, 1, tensor_content=b"abc"), "values that do not fit"),
        (tf.int32, claim(tf.int32, 2, tensor_content=b"1234567"), r"its shape \[2\] of int32"),
        (tf.int32, claim(tf.int32, 2, tensor_content=b"1234"), "values that do not fit"),
        (tf.int32, claim(tf.int32, 1, int_val=[1, 2]), "values that do not fit"),
        (tf.string, tf.make_tensor_proto([1]), "should be string; received int32"),
        (tf.string, tensor_pb2.TensorProto(dtype=21), "should be string; received"),
        (tf.string, tensor_pb2.TensorProto(), "should be string; received type 0"),
    ],
)
def test_claims_are_compared_with_what_is_there(dtype, proto, part):
    with pytest.raises(ServingError, match=part) as error:
        to_array("x", proto, info(dtype), LIMITS)
    assert error.value.code == "INVALID_ARGUMENT"


def test_examples_share_the_features_of_their_context():
    given = input_pb2.Input()
    given.example_list_with_context.context.CopyFrom(example_of({"a": "1", "": "2"}))
    given.example_list_with_context.examples.append(example_of({"": "3"}))
    (made,) = serialized_examples(given, LIMITS)
    assert tf.train.Example.FromString(made) == example_of({"a": "1", "": "3"})


def test_what_examples_share_counts_for_each_of_them():
    given = input_pb2.Input()
    given.example_list_with_context.context.CopyFrom(example_of({"a": "1" * 1000}))
    given.example_list_with_context.examples.extend([example_of({})] * 8)
    limits = Limits(max_request_bytes=8100, max_batch_size=8)
    assert given.ByteSize() < 2000
    with pytest.raises(ServingError, match="are larger; this server allows up to 8100 "):
        serialized_examples(given, limits)
    assert len(serialized_examples(given, Limits(max_request_bytes=9000))) == 8


@pytest.mark.parametrize(("count", "part"), [(0, "holds no example"), (9, "9 rows")])
def test_no_example_and_too_many(count, part):
    given = input_pb2.Input()
    given.example_list.examples.extend([example_of({})] * count)
    with pytest.raises(ServingError, match=part):
        serialized_examples(given, LIMITS)
