"""A web page for trying the models of a server; see index.html, style.css and app.js here.

The page uses the REST API like any client. It has two additional paths: the list of models, and the
pieces of a text.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

from flask import Flask, Response, send_from_directory

from albert_tf.checkpoints import vocabulary
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer
from export.encoding import encode_with_masks
from export.server.models import ModelStore
from export.server.refusals import invalid
from export.server.rest import json_body
from export.server.servable import Servable

_FOLDER = Path(__file__).parent
_MAX_PIECES = 2048  # More would not help a reader.
# Keyed by the loaded object, not by path, since a version's folder may be replaced. Weak, so that
# versions can be unloaded.
_TOKENIZERS: weakref.WeakKeyDictionary[Servable, Tokenizer | None] = weakref.WeakKeyDictionary()
# The page loads nothing from other servers and runs only its own code.
_POLICY = "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'"


def add_playground(app: Flask, store: ModelStore) -> None:
    """Adds the page's paths to the application of the REST API."""

    @app.get("/playground")
    def page() -> Response:
        response = send_from_directory(_FOLDER, "index.html")
        response.headers["Content-Security-Policy"] = _POLICY
        return response

    @app.get("/playground/<any('style.css', 'app.js'):file>")
    def asset(file: str) -> Response:
        return send_from_directory(_FOLDER, file)

    @app.get("/playground/models")
    def models() -> list[dict[str, Any]]:
        return [_described(store.get(name)) for name in store.names()]

    @app.post("/playground/pieces")
    def pieces() -> list[dict[str, Any]]:
        with store.computing:
            body = json_body()
            name, text = body.get("model"), body.get("text")
            if not isinstance(name, str) or not isinstance(text, str):
                raise invalid("The body should hold a string 'model' and a string 'text'.")
            if len(text.encode("utf-8", errors="replace")) > store.limits.max_text_bytes:
                raise invalid("The text is too long for this server (--max_text_bytes).")
            return pieces_of(store.get(name), text)


def _described(servable: Servable) -> dict[str, Any]:
    """The description of a model for the page: name, version, inputs and outputs by signature."""
    return {
        "name": servable.name,
        "version": servable.version,
        "signatures": {
            name: {"inputs": sorted(each.inputs), "outputs": sorted(each.outputs)}
            for name, each in servable.signature_defs.items()
        },
    }


def pieces_of(servable: Servable, text: str) -> list[dict[str, Any]]:
    """The pieces of a text with their ids; none if the export has no vocabulary.

    "a cat" -> [{"piece": "▁a", "id": 21}, {"piece": "▁cat", "id": 2008}].
    """
    if servable not in _TOKENIZERS:
        file = vocabulary.find(os.path.join(servable.path, "assets"))
        _TOKENIZERS[servable] = load_tokenizer(file) if file else None
    tokenizer = _TOKENIZERS[servable]
    if tokenizer is None:
        return []
    reads_masks = any("top_pieces" in each.outputs for each in servable.signature_defs.values())
    ids = encode_with_masks(tokenizer, text) if reads_masks else tokenizer.encode(text)
    ids = ids[:_MAX_PIECES]
    return [{"piece": tokenizer.pieces[id_], "id": int(id_)} for id_ in ids]
