"""TF Serving's REST API as a Flask application: status, metadata, predict and classify."""

from __future__ import annotations

import json
from typing import Any

import tensorflow as tf
from flask import Flask, Response, request
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from werkzeug.exceptions import HTTPException

from export.server import json_tensors
from export.server.classify import classify
from export.server.store import INVALID_ARGUMENT, NOT_FOUND, ModelStore, Servable, ServingError

_HTTP_STATUS = {NOT_FOUND: 404, INVALID_ARGUMENT: 400}
_PATHS = ("/v1/models/<name>", "/v1/models/<name>/versions/<int:version>")


def create_app(store: ModelStore) -> Flask:
    """The application that answers for the models of `store`."""
    app = Flask("export.server.rest")

    def get_status(name: str, version: int | None = None) -> Response:
        rows = [
            {
                "version": str(number),
                "state": state,
                "status": {"error_code": code, "error_message": text},
            }
            for number, state, code, text in store.status(name, version)
        ]
        return _answer({"model_version_status": rows})

    def get_metadata(name: str, version: int | None = None) -> Response:
        return _answer(metadata_answer(store.get(name, version)))

    def post(name: str, verb: str, version: int | None = None) -> Response:
        servable = store.get(name, version)
        if verb not in ("predict", "classify"):
            raise ServingError(
                INVALID_ARGUMENT, f"Unknown method {verb!r}. Use :predict or :classify."
            )
        body = _body()
        answer = predict_answer if verb == "predict" else classify_answer
        return _answer(answer(servable, body))

    for path in _PATHS:
        app.add_url_rule(path, f"status {path}", get_status)
        app.add_url_rule(f"{path}/metadata", f"metadata {path}", get_metadata)
        app.add_url_rule(f"{path}:<verb>", f"post {path}", post, methods=["POST"])
    _register_errors(app)
    return app


def _register_errors(app: Flask) -> None:
    @app.errorhandler(ServingError)
    def serving_error(error: ServingError) -> Response:
        return _answer({"error": error.message}, _HTTP_STATUS[error.code])

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> Response:
        message = (
            f"Malformed request: {request.method} {request.path}. Known: GET /v1/models/NAME, GET "
            "/v1/models/NAME/metadata, POST /v1/models/NAME:predict, POST /v1/models/NAME:classify."
        )
        return _answer({"error": message}, error.code)

    @app.errorhandler(Exception)
    def internal_error(error: Exception) -> Response:
        app.logger.exception("internal error")
        return _answer({"error": f"Internal error: {type(error).__name__}."}, 500)


def _answer(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content), status, mimetype="application/json")


def _body() -> dict[str, Any]:
    """The JSON object of the request; raises ServingError when the body is another thing."""
    try:
        body = json.loads(request.get_data())
    except ValueError as error:
        raise ServingError(INVALID_ARGUMENT, f"The body is not JSON: {error}.") from None
    if not isinstance(body, dict):
        raise ServingError(INVALID_ARGUMENT, "The body should be a JSON object.")
    return body


def predict_answer(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :predict body in row format (`instances`) or column format (`inputs`)."""
    signature = _signature_name(body)
    infos = servable.signature_def(signature).inputs
    if ("instances" in body) == ("inputs" in body):
        raise ServingError(
            INVALID_ARGUMENT,
            "The body should hold either 'instances' (rows) or 'inputs' (columns).",
        )
    if "instances" in body:
        outputs = servable.predict(signature, json_tensors.parse_rows(body["instances"], infos))
        return json_tensors.rows_answer(outputs, len(body["instances"]))
    outputs = servable.predict(signature, json_tensors.parse_columns(body["inputs"], infos))
    return json_tensors.columns_answer(outputs)


def _signature_name(body: dict[str, Any]) -> str:
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise ServingError(INVALID_ARGUMENT, f"'signature_name' should be a string, not {name!r}.")
    return name


def classify_answer(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :classify body: {"results": for each example a list of [class, score]}."""
    examples, context = body.get("examples"), body.get("context", {})
    if not isinstance(examples, list) or not examples:
        raise ServingError(
            INVALID_ARGUMENT, "'examples' should be a list with at least one element."
        )
    if not all(isinstance(part, dict) for part in [*examples, context]):
        raise ServingError(INVALID_ARGUMENT, "Each example should be an object {feature: value}.")
    serialized = [_example({**context, **example}).SerializeToString() for example in examples]
    classes, scores = classify(servable, _signature_name(body), serialized)
    return {
        "results": [
            [[label.decode("utf-8", errors="replace"), score] for label, score in zip(*row)]
            for row in zip(classes.tolist(), scores.tolist())
        ]
    }


def _example(features: dict[str, Any]) -> tf.train.Example:
    """{feature: value or list of values} -> tf.Example; strings, integers or numbers, not mixed."""
    example = tf.train.Example()
    for name, value in features.items():
        values = value if isinstance(value, list) else [value]
        kinds = {type(element) for element in values}
        feature = example.features.feature[name]
        if kinds <= {int}:
            feature.int64_list.value.extend(values)
        elif kinds <= {int, float}:
            feature.float_list.value.extend(values)
        else:
            feature.bytes_list.value.extend(json_tensors.to_bytes(name, values))
    return example


def metadata_answer(servable: Servable) -> dict[str, Any]:
    """The answer to /metadata, in the JSON form of GetModelMetadataResponse."""
    signatures = {name: _signature_json(value) for name, value in servable.signature_defs.items()}
    return {
        "model_spec": {
            "name": servable.name,
            "signature_name": "",
            "version": str(servable.version),
        },
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _signature_json(signature: meta_graph_pb2.SignatureDef) -> dict[str, Any]:
    return {
        "inputs": {name: _tensor_json(info) for name, info in signature.inputs.items()},
        "outputs": {name: _tensor_json(info) for name, info in signature.outputs.items()},
        "method_name": signature.method_name,
    }


def _tensor_json(info: meta_graph_pb2.TensorInfo) -> dict[str, Any]:
    dims = [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim]
    return {
        "dtype": types_pb2.DataType.Name(info.dtype),
        "tensor_shape": {"dim": dims, "unknown_rank": info.tensor_shape.unknown_rank},
        "name": info.name,
    }
