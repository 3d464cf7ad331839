"""TF Serving's REST API as a Flask application: paths, JSON bodies in, JSON answers out."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from flask import Flask, Response, g, request
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from export.server import json_tensors
from export.server.models import ModelStore
from export.server.monitoring import METRICS_PATH, Monitor
from export.server.refusals import Code, ServingError, invalid
from export.server.servable import Servable

_PATHS = (
    "/v1/models/<name>",
    "/v1/models/<name>/versions/<version>",
    "/v1/models/<name>/labels/<label>",
)
_VERBS = ("predict", "classify", "regress")
_KNOWN = (
    "Known: GET /v1/models/NAME, GET /v1/models/NAME/metadata, POST /v1/models/NAME:predict, "
    ":classify and :regress; with /versions/N or /labels/LABEL after NAME."
)
# Name of a gRPC status code -> HTTP status, mapped as in TF Serving.
_STATUS = dict(INVALID_ARGUMENT=400, NOT_FOUND=404, RESOURCE_EXHAUSTED=429, INTERNAL=500)


def create_app(store: ModelStore, monitor: Monitor | None = None) -> Flask:
    """The application that serves the models of `store` and reports requests to `monitor`."""
    app = Flask("export.rest", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]  # Outputs in the signature's order.
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
        model, verb = given.get("name", ""), given.get("verb")
        # A verb that a client invents must not become a label, which would be kept forever.
        api = verb if verb in _VERBS else "status" if model else "other"
        seen.record("REST", api, model, g.code, time.perf_counter() - g.start)
        return response

    _register_errors(app)
    return app


def _register_models(app: Flask, store: ModelStore) -> None:
    def get_status(name: str, version: str | None = None, label: str | None = None) -> Any:
        keys = ("error_code", "error_message")
        rows = [
            {"version": str(number), "state": state, "status": dict(zip(keys, why))}
            for number, state, *why in store.status(name, _number(version), label)
        ]
        return {"model_version_status": rows}

    def get_metadata(name: str, version: str | None = None, label: str | None = None) -> Any:
        return _metadata(store.get(name, _number(version), label))

    def post(name: str, verb: str, version: str | None = None, label: str | None = None) -> Any:
        if request.method != "POST":
            raise MethodNotAllowed(["POST"])
        servable = store.get(name, _number(version), label)
        if verb not in _VERBS:
            raise invalid(f"Unknown method {verb!r:.80}. Use :predict, :classify or :regress.")
        # Also held while the body is parsed: JSON takes twenty times its bytes.
        with store.computing:
            if verb == "predict":
                return _predict(servable, json_body())
            return _infer(servable, json_body(), verb)

    for path in _PATHS:
        app.add_url_rule(path, f"status {path}", get_status)
        app.add_url_rule(f"{path}/metadata", f"metadata {path}", get_metadata)
        # Includes GET; otherwise Flask would treat "topics:predict" as the name of a model.
        app.add_url_rule(f"{path}:<verb>", f"post {path}", post, methods=["GET", "POST"])


def _number(version: str | None) -> int | None:
    """The version number in a path."""
    if version is None:
        return None
    # Not Flask's own converter, which fails for numbers that are too long for Python to parse.
    if not re.fullmatch("[0-9]{1,19}", version):
        raise NotFound
    return int(version)


def _register_errors(app: Flask) -> None:
    def refuse(code: Code, message: str, status: int | None = None) -> tuple[dict[str, str], int]:
        g.code = code
        return {"error": message}, status or _STATUS[code]

    @app.errorhandler(ServingError)
    def serving_error(error: ServingError) -> Any:
        return refuse(error.code, error.message)

    @app.errorhandler(RecursionError)  # From json.loads.
    def too_deep(error: RecursionError) -> Any:
        return refuse("INVALID_ARGUMENT", "The body is nested too deeply.")

    @app.errorhandler(HTTPException)  # Refusals by Flask itself.
    def http_error(error: HTTPException) -> Any:
        if error.code == 413:
            most = app.config["MAX_CONTENT_LENGTH"]
            message = f"The body has more than {most} bytes (--max_request_bytes). Send less."
        else:
            methods = set(getattr(error, "valid_methods", None) or ()) - {"HEAD", "OPTIONS"}
            hint = f"Use {' or '.join(methods)}. " if methods else ""
            message = f"Malformed request: {request.method} {request.path:.200}. {hint}{_KNOWN}"
        code: Code = "NOT_FOUND" if error.code == 404 else "INVALID_ARGUMENT"
        return refuse(code, message, error.code)

    @app.errorhandler(Exception)
    def internal_error(error: Exception) -> Any:
        app.logger.exception("internal error")
        return refuse("INTERNAL", f"Internal error: {type(error).__name__}.")


def json_body() -> dict[str, Any]:
    """The JSON object in the request's body; raises ServingError if it is not an object."""
    # Not request.get_json(), whose errors do not say what is wrong.
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise invalid(f"Content-Encoding {encoding!r:.80} is not supported: send plain JSON.")
    try:
        body = json.loads(request.get_data())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise invalid(f"The body is not JSON: {error!s:.200}.") from None
    except ValueError:  # Python does not parse integers of more than 4,300 digits.
        raise invalid("The body holds a number with thousands of digits.") from None
    if not isinstance(body, dict):
        raise invalid("The body should be a JSON object.")
    return body


def _predict(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :predict body in row format (`instances`) or column format (`inputs`)."""
    signature = _signature_name(body)
    infos = servable.signature_def(signature).inputs
    if ("instances" in body) == ("inputs" in body):
        raise invalid("The body should hold either 'instances' (rows) or 'inputs' (columns).")
    if "inputs" in body:
        inputs = json_tensors.by_name(body["inputs"], infos)
        outputs = servable.predict(signature, inputs, json_tensors.to_array)
        return {"outputs": json_tensors.columns_answer(outputs)}
    rows = _rows(servable, body, "instances")
    columns = json_tensors.columns_of(rows, infos)
    outputs = servable.predict(signature, columns, json_tensors.to_array)
    return {"predictions": json_tensors.rows_answer(outputs, len(rows))}


def _infer(servable: Servable, body: dict[str, Any], verb: str) -> dict[str, Any]:
    """The answer to a :classify or :regress body: for each row, a list of [class, score] or a
    number.
    """
    signature = _signature_name(body)
    rows, context = _rows(servable, body, "examples"), body.get("context", {})
    if not all(isinstance(part, dict) for part in [*rows, context]):
        raise invalid("Each example should be an object {feature: value}.")
    examples = servable.limits.bounded_examples(
        json_tensors.to_example({**context, **row}).SerializeToString() for row in rows
    )
    answer = servable.classify if verb == "classify" else servable.regress
    return {"results": answer(signature, examples)}


def _rows(servable: Servable, body: dict[str, Any], name: str) -> list[Any]:
    rows = body.get(name)
    if not isinstance(rows, list) or not rows:
        raise invalid(f"{name!r} should be a list with at least one element.")
    servable.limits.check_rows(len(rows))  # First: converting a million rows takes long.
    return rows


def _signature_name(body: dict[str, Any]) -> str:
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(f"'signature_name' should be a string, not {name!r:.80}.")
    return name


def _metadata(servable: Servable) -> dict[str, Any]:
    """The JSON form of GetModelMetadataResponse."""
    # Built by hand: TF Serving also prints empty fields, and json_format's option for that has
    # different names in different versions of protobuf.
    spec = {"name": servable.name, "signature_name": "", "version": str(servable.version)}
    signatures = {
        name: {
            "inputs": {key: _tensor(info) for key, info in each.inputs.items()},
            "outputs": {key: _tensor(info) for key, info in each.outputs.items()},
            "method_name": each.method_name,
        }
        for name, each in servable.signature_defs.items()
    }
    return {"model_spec": spec, "metadata": {"signature_def": {"signature_def": signatures}}}


def _tensor(info: meta_graph_pb2.TensorInfo) -> dict[str, Any]:
    dims = [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim]
    return {
        "dtype": types_pb2.DataType.Name(info.dtype),
        "tensor_shape": {"dim": dims, "unknown_rank": info.tensor_shape.unknown_rank},
        "name": info.name,
    }
