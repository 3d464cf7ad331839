"""TF Serving's REST API as a Flask application: paths, JSON bodies in, JSON answers out."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import tensorflow as tf
from flask import Flask, Response, g, request
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from export.server import json_tensors
from export.server.models import ModelStore
from export.server.monitoring import METRICS_PATH, Monitor
from export.server.refusals import (
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    ServingError,
    invalid,
)
from export.server.servable import Servable

_PATHS = (
    "/v1/models/<name>",
    "/v1/models/<name>/versions/<version>",
    "/v1/models/<name>/labels/<label>",
)
_KNOWN = (
    "Known: GET /v1/models/NAME, GET /v1/models/NAME/metadata, POST /v1/models/NAME:predict, "
    ":classify and :regress; with /versions/N or /labels/LABEL after NAME."
)
# Name of a gRPC status code -> status of HTTP, as TF Serving maps them.
_STATUS = {INVALID_ARGUMENT: 400, NOT_FOUND: 404, RESOURCE_EXHAUSTED: 429, INTERNAL: 500}


def create_app(store: ModelStore, monitor: Monitor | None = None) -> Flask:
    """The application that answers for the models of `store` and tells `monitor` what it did."""
    app = Flask("export.rest", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config["MAX_CONTENT_LENGTH"] = store.limits.max_request_bytes
    seen = monitor or Monitor(store.names())
    _register_models(app, store)

    @app.get("/healthz")
    def get_health() -> dict[str, Any]:
        return {"status": "SERVING", "models": store.names()}

    @app.get(METRICS_PATH)
    def get_metrics() -> Response:
        return Response(seen.text(), mimetype="text/plain; version=0.0.4")

    @app.before_request
    def start() -> None:
        g.start, g.code = time.perf_counter(), "OK"

    @app.after_request
    def record(response: Response) -> Response:
        given = request.view_args or {}
        model, api = given.get("name", ""), given.get("verb", request.endpoint or "")
        api = api if api in _VERBS else "status" if model else "other"
        seen.record("REST", api, model, g.code, time.perf_counter() - g.start)
        return response

    _register_errors(app)
    return app


def _register_models(app: Flask, store: ModelStore) -> None:
    def get_status(name: str, version: str | None = None, label: str | None = None) -> Any:
        rows = store.status(name, _number(version), label)
        return {"model_version_status": [_version_json(*row) for row in rows]}

    def get_metadata(name: str, version: str | None = None, label: str | None = None) -> Any:
        return _metadata_json(store.get(name, _number(version), label))

    def post(name: str, verb: str, version: str | None = None, label: str | None = None) -> Any:
        if request.method != "POST":
            raise MethodNotAllowed(["POST"])
        servable = store.get(name, _number(version), label)
        if verb not in _VERBS:
            raise invalid(f"Unknown method {verb!r:.80}. Use :predict, :classify or :regress.")
        with store.computing:
            return _VERBS[verb](servable, json_body())

    for path in _PATHS:
        app.add_url_rule(path, f"status {path}", get_status)
        app.add_url_rule(f"{path}/metadata", f"metadata {path}", get_metadata)
        # With GET, or Flask would take "topics:predict" for the name of a model.
        app.add_url_rule(f"{path}:<verb>", f"post {path}", post, methods=["GET", "POST"])


def _number(version: str | None) -> int | None:
    """The version in a path; Flask's own converter fails where Python reads no such long number."""
    if version is None:
        return None
    if not re.fullmatch("[0-9]{1,19}", version):
        raise NotFound
    return int(version)


def _register_errors(app: Flask) -> None:
    def refuse(code: str, message: str, status: int | None = None) -> tuple[dict[str, str], int]:
        g.code = code
        return {"error": message}, status or _STATUS[code]

    @app.errorhandler(ServingError)
    def serving_error(error: ServingError) -> Any:
        return refuse(error.code, error.message)

    @app.errorhandler(RecursionError)
    def too_deep(error: RecursionError) -> Any:
        return refuse(INVALID_ARGUMENT, "The body is nested too deeply.")

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> Any:
        if error.code == 413:
            most = app.config["MAX_CONTENT_LENGTH"]
            message = f"The body has more than {most} bytes (--max_request_bytes). Send less."
        else:
            methods = set(getattr(error, "valid_methods", None) or ()) - {"HEAD", "OPTIONS"}
            hint = f"Use {' or '.join(methods)}. " if methods else ""
            message = f"Malformed request: {request.method} {request.path:.200}. {hint}{_KNOWN}"
        return refuse(NOT_FOUND if error.code == 404 else INVALID_ARGUMENT, message, error.code)

    @app.errorhandler(Exception)
    def internal_error(error: Exception) -> Any:
        app.logger.exception("internal error")
        return refuse(INTERNAL, f"Internal error: {type(error).__name__}.")


def json_body() -> dict[str, Any]:
    """The JSON object of the request; raises ServingError when the body is another thing."""
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise invalid(f"Content-Encoding {encoding!r:.80} is not read here: send plain JSON.")
    try:
        body = json.loads(request.get_data())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise invalid(f"The body is not JSON: {error!s:.200}.") from None
    except ValueError:  # Python reads no integers of more than 4,300 digits.
        raise invalid("The body holds a number of thousands of digits.") from None
    if not isinstance(body, dict):
        raise invalid("The body should be a JSON object.")
    return body


def _predict(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :predict body in row format (`instances`) or column format (`inputs`)."""
    signature = _signature_name(body)
    infos = servable.signature_def(signature).inputs
    if ("instances" in body) == ("inputs" in body):
        raise invalid("The body should hold either 'instances' (rows) or 'inputs' (columns).")
    if "instances" in body:
        rows = body["instances"]
        servable.limits.check_rows(len(rows) if isinstance(rows, list) else 0)
        outputs = servable.predict(signature, json_tensors.parse_rows(rows, infos))
        return json_tensors.rows_answer(outputs, len(rows))
    outputs = servable.predict(signature, json_tensors.parse_columns(body["inputs"], infos))
    return json_tensors.columns_answer(outputs)


def _classify(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :classify body: for each example a list of [class, score]."""
    return {"results": servable.classify(_signature_name(body), _examples(servable, body))}


def _regress(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :regress body: a number for each example."""
    return {"results": servable.regress(_signature_name(body), _examples(servable, body))}


_VERBS = {"predict": _predict, "classify": _classify, "regress": _regress}


def _signature_name(body: dict[str, Any]) -> str:
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(f"'signature_name' should be a string, not {name!r:.80}.")
    return name


def _examples(servable: Servable, body: dict[str, Any]) -> list[bytes]:
    """The serialized tf.Examples of a body: `examples`, each with the features of `context`."""
    examples, context = body.get("examples"), body.get("context", {})
    if not isinstance(examples, list) or not examples:
        raise invalid("'examples' should be a list with at least one element.")
    servable.limits.check_rows(len(examples))
    if not all(isinstance(part, dict) for part in [*examples, context]):
        raise invalid("Each example should be an object {feature: value}.")
    return servable.limits.bounded_examples(
        _example({**context, **example}).SerializeToString() for example in examples
    )


def _example(features: dict[str, Any]) -> tf.train.Example:
    """{feature: value or list of values} -> tf.Example; strings, integers or numbers, not mixed."""
    example = tf.train.Example()
    for name, value in features.items():
        values = value if isinstance(value, list) else [value]
        kinds = {type(element) for element in values}
        try:
            feature = example.features.feature[name]
            if kinds <= {int}:
                feature.int64_list.value.extend(values)
            elif kinds <= {int, float}:
                feature.float_list.value.extend(values)
            else:
                feature.bytes_list.value.extend(json_tensors.to_bytes(name, values))
        except (ValueError, TypeError, OverflowError):
            raise invalid(
                f"Feature {name!r:.80} does not fit a tf.Example: integers are int64, numbers "
                "float32, everything else strings in a list."
            ) from None
    return example


def _version_json(number: int, state: str, code: str, text: str) -> dict[str, Any]:
    status = {"error_code": code, "error_message": text}
    return {"version": str(number), "state": state, "status": status}


def _metadata_json(servable: Servable) -> dict[str, Any]:
    """The JSON form of GetModelMetadataResponse."""
    spec = {"name": servable.name, "signature_name": "", "version": str(servable.version)}
    signatures = {
        name: {
            "inputs": {key: _tensor_json(info) for key, info in each.inputs.items()},
            "outputs": {key: _tensor_json(info) for key, info in each.outputs.items()},
            "method_name": each.method_name,
        }
        for name, each in servable.signature_defs.items()
    }
    return {"model_spec": spec, "metadata": {"signature_def": {"signature_def": signatures}}}


def _tensor_json(info: meta_graph_pb2.TensorInfo) -> dict[str, Any]:
    dims = [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim]
    return {
        "dtype": types_pb2.DataType.Name(info.dtype),
        "tensor_shape": {"dim": dims, "unknown_rank": info.tensor_shape.unknown_rank},
        "name": info.name,
    }
