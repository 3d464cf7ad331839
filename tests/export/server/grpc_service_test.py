"""The gRPC API, asked through tensorflow-serving-api's stock stubs."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from export.encoding import encode_batch
from export.probes import example_of
from export.server.listeners import start_grpc

TEXTS = ["the cat", "Café in 2010, 3.0"]


@pytest.fixture(scope="module")
def channel(store):
    server, port = start_grpc(store, "127.0.0.1", 0)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    server.stop(None).wait()


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def request(inputs, name="topics", signature="", version=None):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = name
    message.model_spec.signature_name = signature
    if version is not None:
        message.model_spec.version.value = version
    for key, value in inputs.items():
        message.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return message


def test_predict_equals_keras(stub, exports):
    inputs = encode_batch(exports.vocabulary, TEXTS, 48)
    logits = exports.models["classifier"](inputs, training=False)
    for message in (request({"text": TEXTS}), request(inputs, signature="tokens", version=1)):
        response = stub.Predict(message, 30)
        np.testing.assert_allclose(tf.make_ndarray(response.outputs["logits"]), logits, atol=1e-5)
        assert (response.model_spec.name, response.model_spec.version.value) == ("topics", 1)
    assert response.model_spec.signature_name == "tokens"
    assert set(response.outputs) == {"logits", "probabilities", "label", "label_id"}


def test_output_filter(stub):
    message = request({"text": TEXTS})
    message.output_filter.append("label")
    assert set(stub.Predict(message, 30).outputs) == {"label"}


def test_masked_lm_without_masks(stub):
    outputs = stub.Predict(request({"text": ["a"]}, "words"), 30).outputs
    assert tf.make_ndarray(outputs["top_pieces"]).shape == (1, 0, 5)
    assert outputs["top_pieces"].dtype == tf.string.as_datatype_enum


@pytest.mark.parametrize("with_context", [False, True])
def test_classify(stub, with_context):
    message = classification_pb2.ClassificationRequest()
    message.model_spec.name = "topics"
    message.model_spec.signature_name = "classify"
    if with_context:
        listed = message.input.example_list_with_context
        listed.context.CopyFrom(example_of({"text": TEXTS[0]}))
        listed.examples.extend([example_of({}), example_of({})])
    else:
        message.input.example_list.examples.extend([example_of({"text": TEXTS[0]})] * 2)
    rows = stub.Classify(message, 30).result.classifications
    expected = tf.make_ndarray(
        stub.Predict(request({"text": TEXTS[:1]}), 30).outputs["probabilities"]
    )[0]
    assert len(rows) == 2
    for row in rows:
        assert [entry.label for entry in row.classes] == ["red", "green", "blå"]
        np.testing.assert_allclose([entry.score for entry in row.classes], expected, atol=1e-5)


def test_metadata(stub):
    message = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    message.model_spec.name = "words"
    response = stub.GetModelMetadata(message, 30)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert set(signatures.signature_def) == {"serving_default", "tokens"}
    assert "top_pieces" in signatures.signature_def["serving_default"].outputs


def test_status(channel):
    message = get_model_status_pb2.GetModelStatusRequest()
    message.model_spec.name = "topics"
    response = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(message, 30)
    (status,) = response.model_version_status
    assert status.version == 1
    assert status.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE


@pytest.mark.parametrize(
    ("message", "code", "part"),
    [
        (request({"text": ["a"]}, "other"), "NOT_FOUND", "Served: topics, words"),
        (request({"text": ["a"]}, ""), "INVALID_ARGUMENT", "model_spec.name is empty"),
        (request({"text": ["a"]}, version=3), "NOT_FOUND", "version 1 is"),
        (request({"text": ["a"]}, signature="x"), "INVALID_ARGUMENT", "It has: classify"),
        (request({"txt": ["a"]}), "INVALID_ARGUMENT", "takes the inputs text; received txt"),
        (request({}), "INVALID_ARGUMENT", "received none"),
        (request({"text": [1]}), "INVALID_ARGUMENT", "should be string; received int32"),
        (request({"text": "a"}), "INVALID_ARGUMENT", "should have the shape"),
    ],
)
def test_bad_requests_get_a_status_and_a_sentence(stub, message, code, part):
    with pytest.raises(grpc.RpcError) as error:
        stub.Predict(message, 30)
    assert error.value.code() == getattr(grpc.StatusCode, code)
    assert part in error.value.details()


def test_bad_filters_tensors_and_examples(stub):
    filtered = request({"text": ["a"]})
    filtered.output_filter.append("x")
    garbled = request({"text": ["a"]})
    garbled.inputs["text"].string_val.extend([b"b", b"c"])
    empty = classification_pb2.ClassificationRequest()
    empty.model_spec.name, empty.model_spec.signature_name = "topics", "classify"
    for call, message, part in (
        (stub.Predict, filtered, "output_filter names x"),
        (stub.Predict, garbled, "no valid tensor"),
        (stub.Classify, empty, "holds no example"),
    ):
        with pytest.raises(grpc.RpcError) as error:
            call(message, 30)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert part in error.value.details()
