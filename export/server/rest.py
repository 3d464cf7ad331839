"""TF Serving's REST API as a Flask application: which path leads where, and errors in JSON."""

from __future__ import annotations

import time

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException

from export.server import rest_answers
from export.server.bodies import json_answer, json_body
from export.server.errors import HTTP_STATUS, INTERNAL, INVALID_ARGUMENT, NOT_FOUND, ServingError
from export.server.monitoring import METRICS_PATH, Monitor
from export.server.playground import add_playground
from export.server.store import ModelStore

_PATHS = (
    "/v1/models/<name>",
    "/v1/models/<name>/versions/<int:version>",
    "/v1/models/<name>/labels/<label>",
)
_VERBS = {
    "predict": rest_answers.predict_answer,
    "classify": rest_answers.classify_answer,
    "regress": rest_answers.regress_answer,
}


def create_app(
    store: ModelStore, monitor: Monitor | None = None, playground: bool = False
) -> Flask:
    """The application that answers for the models of `store` and tells `monitor` what it did."""
    app = Flask("export.rest", static_folder=None)
    seen = monitor or Monitor(store.names())
    _register_models(app, store)

    @app.get("/healthz")
    def get_health() -> Response:
        return json_answer({"status": "SERVING", "models": store.names()})

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

    if playground:
        add_playground(app, store)
    _register_errors(app)
    return app


def _register_models(app: Flask, store: ModelStore) -> None:
    def get_status(name: str, version: int | None = None, label: str | None = None) -> Response:
        return json_answer(rest_answers.status_answer(store.status(name, version, label)))

    def get_metadata(name: str, version: int | None = None, label: str | None = None) -> Response:
        return json_answer(rest_answers.metadata_answer(store.get(name, version, label)))

    def post(
        name: str, verb: str, version: int | None = None, label: str | None = None
    ) -> Response:
        servable = store.get(name, version, label)
        if verb not in _VERBS:
            raise ServingError(
                INVALID_ARGUMENT,
                f"Unknown method {verb!r:.80}. Use :predict, :classify or :regress.",
            )
        with store.turns.turn():
            return json_answer(_VERBS[verb](servable, json_body()))

    for path in _PATHS:
        app.add_url_rule(path, f"status {path}", get_status)
        app.add_url_rule(f"{path}/metadata", f"metadata {path}", get_metadata)
        app.add_url_rule(f"{path}:<verb>", f"post {path}", post, methods=["POST"])


def _register_errors(app: Flask) -> None:
    def refuse(code: str, message: str, status: int | None = None) -> Response:
        g.code = code
        return json_answer({"error": message}, status or HTTP_STATUS[code])

    @app.errorhandler(ServingError)
    def serving_error(error: ServingError) -> Response:
        return refuse(error.code, error.message)

    @app.errorhandler(RecursionError)
    def too_deep(error: RecursionError) -> Response:
        return refuse(INVALID_ARGUMENT, "The body is nested too deeply.")

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> Response:
        message = (
            f"Malformed request: {request.method} {request.path:.200}. Known: GET "
            "/v1/models/NAME, GET /v1/models/NAME/metadata, POST /v1/models/NAME:predict, "
            ":classify and :regress; with /versions/N or /labels/LABEL after NAME."
        )
        return refuse(NOT_FOUND if error.code == 404 else INVALID_ARGUMENT, message, error.code)

    @app.errorhandler(Exception)
    def internal_error(error: Exception) -> Response:
        app.logger.exception("internal error")
        return refuse(INTERNAL, f"Internal error: {type(error).__name__}.")
