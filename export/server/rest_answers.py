"""The answers of the REST API: JSON bodies in, JSON values out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from export.server import json_tensors
from export.server.errors import invalid
from export.server.inference import classify, regress
from export.server.servable import Servable


def predict_answer(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
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


def _signature_name(body: dict[str, Any]) -> str:
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(f"'signature_name' should be a string, not {name!r:.80}.")
    return name


def classify_answer(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :classify body: {"results": for each example a list of [class, score]}."""
    classes, scores = classify(servable, _signature_name(body), _examples(servable, body))
    return {
        "results": [
            [[label.decode("utf-8", errors="replace"), score] for label, score in zip(*row)]
            for row in zip(classes.tolist(), scores.tolist())
        ]
    }


def regress_answer(servable: Servable, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a :regress body: {"results": a number for each example}."""
    return {"results": regress(servable, _signature_name(body), _examples(servable, body)).tolist()}


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


def status_answer(rows: Iterable[tuple[int, str, str, str]]) -> dict[str, Any]:
    """The answer to a request for the state of a model's versions."""
    return {
        "model_version_status": [
            {
                "version": str(number),
                "state": state,
                "status": {"error_code": code, "error_message": text},
            }
            for number, state, code, text in rows
        ]
    }


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
