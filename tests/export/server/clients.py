"""Clients of the server under test: HTTP with and without a library, and gRPC."""

import contextlib
import json
import socket
import urllib.error
import urllib.request

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from export.server.grpc_service import create_server
from export.server.monitoring import Monitor

PREDICT = "/v1/models/tiny:predict"


def call(running, path, body=None, seconds=10):
    """(status, JSON) of a REST request; `body` is bytes or a JSON value."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(running.rest + path, data, seconds) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def raw(running):
    """A connection on which HTTP is written by hand."""
    host, port = running.rest.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def refusal(method, message):
    """(code, sentence) of a call of gRPC that is refused."""
    with pytest.raises(grpc.RpcError) as error:
        method(message, 20)
    return error.value.code().name, error.value.details()


def predict_request(
    name="tiny", signature="", version=None, inputs=None, output_filter=(), version_label=""
):
    """A PredictRequest, by default for the text "abc"."""
    request = predict_pb2.PredictRequest(output_filter=output_filter)
    spec = request.model_spec
    spec.name, spec.signature_name, spec.version_label = name, signature, version_label
    if version is not None:
        spec.version.value = version
    for key, value in ({"text": ["abc"]} if inputs is None else inputs).items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return request


@contextlib.contextmanager
def serving_grpc(store, host="127.0.0.1"):
    """The port of a gRPC server in this process that answers for a store."""
    server, port = create_server(host, 0, store, Monitor(store.names()))
    server.start()
    yield port
    server.stop(None).wait()
