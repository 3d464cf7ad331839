"""TF Serving's JSON for tensors: requests in row and column format -> arrays -> answers.

Strings are UTF-8, bytes are `{"b64": "..."}`; a single input or output may go without its name.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from export.server.refusals import ServingError, invalid, listed

_MAX_DEPTH = 8  # Dimensions of a tensor; NumPy and TensorFlow fail in their own ways at some more.

Infos = Mapping[str, meta_graph_pb2.TensorInfo]


def parse_rows(instances: Any, infos: Infos) -> dict[str, np.ndarray]:
    """Arrays by input name of a request in row format: [{"a": 1}, {"a": 2}] -> {"a": [1, 2]}.

    Each row is `{input: value}`, or the value of the only input. Raises ServingError when they do
    not fit `infos`, the inputs of the signature.
    """
    if not isinstance(instances, list) or not instances:
        raise _invalid("'instances' should be a list with at least one element")
    columns: dict[str, list[Any]] = {name: [] for name in infos}
    for row, instance in enumerate(instances):
        values = _by_name(instance, infos)
        if set(values) != set(infos):
            raise _invalid(
                f"instances[{row}] should hold the inputs {listed(infos)}; received "
                f"{listed(values) or 'none'}"
            )
        for name, value in values.items():
            columns[name].append(value)
    return {name: to_array(name, values, infos[name]) for name, values in columns.items()}


def parse_columns(inputs: Any, infos: Infos) -> dict[str, np.ndarray]:
    """Arrays by input name of a request in column format: {"a": [1, 2]} -> {"a": [1, 2]}.

    Without its name, a value is that of the only input. Raises ServingError as `parse_rows` does.
    """
    values = _by_name(inputs, infos)
    unknown = set(values) - set(infos)
    if unknown:
        raise _invalid(f"'inputs' names {listed(unknown)}; allowed: {listed(infos)}")
    return {name: to_array(name, value, infos[name]) for name, value in values.items()}


def _by_name(value: Any, infos: Infos) -> Mapping[str, Any]:
    if isinstance(value, dict) and set(value) != {"b64"}:
        return value
    if len(infos) != 1:
        raise _invalid(f"there are {len(infos)} inputs, so each needs its name: {listed(infos)}")
    return {next(iter(infos)): value}


def to_array(name: str, value: Any, info: meta_graph_pb2.TensorInfo) -> np.ndarray:
    """JSON value -> array of the input's type; raises ServingError when it does not fit."""
    dtype = tf.as_dtype(info.dtype)
    if _is_deeper(value, _MAX_DEPTH):
        raise _invalid(f"input {name!r} is nested more than {_MAX_DEPTH} deep")
    if dtype == tf.string:
        return np.array(to_bytes(name, value), dtype=object)
    # Before NumPy sees it, which takes true for 1, and gives all elements the room of the longest.
    if not _holds_only({int} if dtype.is_integer else {int, float}, value):
        raise _invalid(f"input {name!r} should hold {dtype.name} numbers only")
    too_large = _invalid(f"input {name!r} holds numbers that do not fit into {dtype.name}")
    try:
        array = np.array(value)
        smallest, largest = array.min(initial=0), array.max(initial=0)
        if dtype.is_integer and not dtype.min <= smallest <= largest <= dtype.max:
            raise too_large
        return array.astype(dtype.as_numpy_dtype)
    except OverflowError:  # An integer that is larger than any float.
        raise too_large from None
    except ValueError:
        raise _invalid(f"input {name!r} is ragged: all rows should have the same length") from None


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether lists are nested deeper: [[1]] is deeper than 1."""
    if not isinstance(value, list):
        return False
    return depth == 0 or any(_is_deeper(element, depth - 1) for element in value)


def _holds_only(kinds: set[type], value: Any) -> bool:
    """Whether all elements of a JSON value are of these kinds; true and false are not integers."""
    if isinstance(value, list):
        return all(_holds_only(kinds, element) for element in value)
    return type(value) in kinds


def to_bytes(name: str, value: Any) -> Any:
    """JSON strings, {"b64": ...} and lists of them -> bytes in the same structure."""
    if isinstance(value, list):
        return [to_bytes(name, element) for element in value]
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace")
    if isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except binascii.Error as error:
            raise _invalid(f"input {name!r:.80} holds bad base64: {error}") from None
    raise _invalid(
        f'input {name!r:.80} should hold strings or {{"b64": "..."}}; received {value!r:.80}'
    )


def rows_answer(outputs: Mapping[str, np.ndarray], num_rows: int) -> dict[str, Any]:
    """The answer in row format, {"predictions": [...]}, with an element for each row."""
    for name, value in outputs.items():
        if value.ndim == 0 or len(value) != num_rows:
            raise _invalid(
                f"output {name!r} has no row for each instance: ask in column format ('inputs')"
            )
    columns = {name: to_json(name, value) for name, value in outputs.items()}
    if len(columns) == 1:
        return {"predictions": next(iter(columns.values()))}
    return {
        "predictions": [{name: columns[name][row] for name in columns} for row in range(num_rows)]
    }


def columns_answer(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The answer in column format, {"outputs": ...}: the only tensor, or tensors by name."""
    columns = {name: to_json(name, value) for name, value in outputs.items()}
    return {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}


def to_json(name: str, value: np.ndarray) -> Any:
    """Array -> JSON value; outputs whose names end in `_bytes` are base64."""
    if value.dtype.kind not in "OS":
        return value.tolist()
    return _text(value.tolist(), as_base64=name.endswith("_bytes"))


def _text(value: Any, as_base64: bool) -> Any:
    if isinstance(value, list):
        return [_text(element, as_base64) for element in value]
    if as_base64:
        return {"b64": base64.b64encode(value).decode("ascii")}
    return value.decode("utf-8", errors="replace")


def _invalid(message: str) -> ServingError:
    return invalid(f"Bad request: {message}.")
