"""Clients of an exported model: in this process, over HTTP, or over gRPC.

HTTP uses the standard library; gRPC uses the client classes of tensorflow-serving-api.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from data_pipeline.errors import UserError, needs_extra
from export import saved_model
from export.graphs import checks
from export.signatures import DEFAULT_SIGNATURE

_TIMEOUT_SECONDS = 60.0


def predict_saved_model(
    path: str, inputs: Mapping[str, Any], signature: str = DEFAULT_SIGNATURE
) -> dict[str, np.ndarray]:
    """The outputs, by name, of one signature of a SavedModel, which is loaded in this process.

    Args:
      path: a SavedModel's folder, or the folder of its versions; then the highest is loaded.
      inputs: arrays or nested lists by input name.

    Raises:
      UserError: there is no SavedModel or no such signature, or the signature has other inputs.
    """
    versions = saved_model.existing_versions(path)
    folder = os.path.join(path, str(versions[-1])) if versions else path
    if not tf.io.gfile.exists(os.path.join(folder, "saved_model.pb")):
        raise UserError(
            f"{folder} is not a SavedModel: it holds no saved_model.pb. Pass the folder that "
            "run_export printed."
        )
    signatures = _load(folder)
    if signature not in signatures:
        raise UserError(
            f"{folder} has no signature {signature!r}. It has: {', '.join(sorted(signatures))}."
        )
    specs = signatures[signature].structured_input_signature[1]
    if set(specs) != set(inputs):
        raise UserError(
            f"Signature {signature!r} of {folder} takes {', '.join(sorted(specs))}; received "
            f"{', '.join(sorted(inputs)) or 'nothing'}. Give these, for instance as objects in "
            "--input_file."
        )
    tensors = {name: _tensor(name, value, specs[name]) for name, value in inputs.items()}
    try:
        answer = signatures[signature](**tensors)
    except checks.REFUSALS as error:
        reason = checks.reason(error).rstrip(".")
        raise UserError(f"{folder}, signature {signature!r}: {reason}.") from None
    return {name: value.numpy() for name, value in answer.items()}


def _tensor(name: str, value: Any, spec: tf.TensorSpec | None = None) -> tf.Tensor:
    """Converts an input to a tensor; raises UserError if that fails, or if type or shape do not fit
    the signature. Without a spec, the server checks type and shape.
    """
    wanted = f"{spec.dtype.name} {spec.shape}" if spec else "an array of one type"
    try:
        tensor = tf.constant(value, spec and spec.dtype)
        is_right = spec is None or spec.shape.is_compatible_with(tensor.shape)
        if spec and spec.dtype.is_integer:  # TensorFlow converts 2**32 + 5 to the int32 5.
            is_right = is_right and np.array_equal(tensor, np.array(value))
    except (TypeError, ValueError, tf.errors.InvalidArgumentError):
        is_right = False
    if not is_right:
        raise UserError(
            f"Input {name!r} should be {wanted}; received {value!r:.100}. Give all rows values of "
            "that type, and lists of one length."
        )
    return tensor


@functools.lru_cache(maxsize=1)  # A file is read as many batches for the same model.
def _load(folder: str) -> Mapping[str, Any]:
    """The signatures of a SavedModel; a version's folder never changes."""
    return saved_model.load(folder).signatures


def predict_rest(
    url: str,
    model: str,
    instances: Sequence[Any],
    signature: str = DEFAULT_SIGNATURE,
    timeout: float = _TIMEOUT_SECONDS,
) -> list[Any]:
    """The `predictions` of a server, one for each row: POST `<url>/v1/models/<model>:predict`.

    Args:
      url: address of the server, as in "http://127.0.0.1:8501".
      instances: one element for each row: `{input: value}`, or the value of the only input.
      timeout: seconds to wait for the answer.

    Raises:
      UserError: the server does not answer, or answers with an error.
    """
    body = json.dumps({"signature_name": signature, "instances": list(instances)}).encode()
    address = f"{url.rstrip('/')}/v1/models/{urllib.parse.quote(model)}:predict"
    try:
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as response:
            text = response.read()
    # HTTPError and TimeoutError are subclasses of OSError, so they must come before it.
    except urllib.error.HTTPError as error:
        raise UserError(f"{address} answered {error.code}: {_body_of(error)}") from None
    except TimeoutError:
        raise UserError(
            f"{address} has not answered in {timeout:g} seconds. Ask for fewer rows at once "
            "(--batch_size)."
        ) from None
    except (http.client.InvalidURL, ValueError) as error:
        raise UserError(
            f"{address} is not an address: {error}. Pass http://HOST:PORT/v1/models/NAME."
        ) from None
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError.
        reason = getattr(error, "reason", error)
        raise UserError(f"{address} does not answer: {reason}. Is the server running?") from None
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or "predictions" not in answer:
        raise UserError(
            f"{address} answered without `predictions`, unlike TensorFlow Serving. Is another "
            "server there?"
        )
    return answer["predictions"]


def _body_of(error: urllib.error.HTTPError) -> str:
    """The message in an error answer, or the name of its status."""
    try:
        return error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return str(error.reason)


def predict_grpc(
    address: str,
    model: str,
    inputs: Mapping[str, Any],
    signature: str = DEFAULT_SIGNATURE,
    timeout: float = _TIMEOUT_SECONDS,
) -> dict[str, np.ndarray]:
    """The outputs of a server, by name, from TF Serving's Predict method.

    Args:
      address: address of the server, as in "127.0.0.1:8500".
      inputs: arrays or nested lists by input name.
      timeout: seconds to wait for the answer.

    Raises:
      UserError: the server does not answer, or answers with an error.
    """
    with needs_extra("serving", f"grpc://{address}"):
        import grpc
        from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(_tensor(name, value)))
    try:
        # By default, gRPC rejects answers above 4 MB.
        with grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)]) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            response = stub.Predict(request, timeout)
    except grpc.RpcError as error:
        raise UserError(
            f"grpc://{address} answered {error.code().name}: {error.details()}"
        ) from None
    return {name: tf.make_ndarray(value) for name, value in response.outputs.items()}


def predict_rows(
    model: str, rows: Sequence[Mapping[str, Any]], signature: str = DEFAULT_SIGNATURE
) -> list[dict[str, Any]]:
    """The answer of one signature to each row: plain Python values by output name.

    Args:
      model: folder of a SavedModel or of its versions, http://HOST:PORT/v1/models/NAME, or
        grpc://HOST:PORT/NAME.
      rows: the inputs of each row by name: a string, or a list such as options.

    Raises:
      UserError: the address is malformed, there is no answer, or the signature has other inputs.
    """
    inputs = _columns(rows)
    if model.startswith(("http://", "https://")):
        url, found, name = model.rstrip("/").partition("/v1/models/")
        if not found or not name:
            raise UserError(f"--model={model} should look like http://HOST:PORT/v1/models/NAME.")
        instances = [dict(zip(inputs, values)) for values in zip(*inputs.values())]
        found_rows = predict_rest(url, urllib.parse.unquote(name), instances, signature)
        # Over HTTP, the answer of a single output does not contain its name.
        named = [row if isinstance(row, dict) else {"value": row} for row in found_rows]
        return [_without_fillers(row) for row in named]
    if model.startswith("grpc://"):
        address, slash, name = model[len("grpc://") :].partition("/")
        if not slash or not name:
            raise UserError(f"--model={model} should look like grpc://HOST:PORT/NAME.")
        return _rows(predict_grpc(address, name, inputs, signature))
    return _rows(predict_saved_model(model, inputs, signature))


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Converts rows to columns by name; lists of one column are padded to the same length.

    [{"x": ["a"]}, {"x": ["b", "c"]}] -> {"x": [["a", ""], ["b", "c"]]}.
    """
    names = list(rows[0])
    for number, row in enumerate(rows, 1):
        if set(row) != set(names):
            raise UserError(
                f"Row {number} has {', '.join(row)}; the first has {', '.join(names)}. Give all "
                "rows the same inputs."
            )
    columns = {name: [row[name] for row in rows] for name in names}
    for name, values in columns.items():
        if all(isinstance(value, list) for value in values):
            longest = max(map(len, values))
            kinds = {type(each) for value in values for each in value}
            if len(kinds) == 1 and kinds <= {str, int, float}:
                filler = kinds.pop()()  # "", 0 or 0.0.
                columns[name] = [value + [filler] * (longest - len(value)) for value in values]
    return columns


def _rows(outputs: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Arrays by output name -> one dict of plain Python values for each row."""
    columns = {name: _plain(value.tolist()) for name, value in outputs.items()}
    return [_without_fillers(dict(zip(columns, row))) for row in zip(*columns.values())]


def _without_fillers(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a multi-label model without the fillers after its labels."""
    if "num_labels" not in row:
        return row
    return {**row, "labels": row["labels"][: row["num_labels"]]}


def _plain(value: Any) -> Any:
    """A value or nested list with strings in place of bytes."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value
