"""Refusals: one sentence, and a status for both doors."""

from __future__ import annotations

import grpc

from export.server import errors


def test_every_code_is_one_of_grpc_and_has_a_status_of_http():
    assert set(errors.HTTP_STATUS) <= {code.name for code in grpc.StatusCode}
    assert errors.HTTP_STATUS[errors.NOT_FOUND] == 404
    assert errors.HTTP_STATUS[errors.RESOURCE_EXHAUSTED] == 429
    assert errors.HTTP_STATUS[errors.INTERNAL] == 500


def test_a_refusal_of_the_request_itself():
    error = errors.invalid("The body is empty.")
    assert isinstance(error, errors.ServingError) and str(error) == error.message
    assert (error.code, error.message) == (errors.INVALID_ARGUMENT, "The body is empty.")
    assert errors.HTTP_STATUS[error.code] == 400


def test_names_as_in_a_sentence():
    assert errors.listed(["b", "a"]) == "a, b"
    assert errors.listed(["k" * 1000]) == "k" * 400 + "..."
