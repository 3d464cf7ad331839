"""Bodies of HTTP: JSON in, JSON out."""

from __future__ import annotations

import json
from typing import Any

from flask import Response, request

from export.server.errors import invalid


def json_answer(content: Any, status: int = 200) -> Response:
    """A response with a body of JSON."""
    return Response(json.dumps(content), status, mimetype="application/json")


def json_body() -> dict[str, Any]:
    """The JSON object of the request; raises ServingError when the body is another thing."""
    try:
        body = json.loads(request.get_data())
    except ValueError as error:
        raise invalid(f"The body is not JSON: {error!s:.200}.") from None
    if not isinstance(body, dict):
        raise invalid("The body should be a JSON object.")
    return body
