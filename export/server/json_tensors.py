"""TF Serving's JSON: values of requests -> arrays and tf.Examples, arrays -> values of answers.

Strings are UTF-8, bytes are `{"b64": "..."}`; the name of a single input or output may be omitted.
Invalid values raise ServingError.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import TensorInfo

from export.server.refusals import MAX_DIMENSIONS, invalid, listed

Infos = Mapping[str, TensorInfo]  # The inputs of a signature by name.


def columns_of(rows: Sequence[Any], infos: Infos) -> dict[str, list[Any]]:
    """Row format -> column format: [{"a": 1}, {"a": 2}] -> {"a": [1, 2]}."""
    named = [by_name(row, infos) for row in rows]
    for number, row in enumerate(named):
        if set(row) != set(infos):
            raise invalid(
                f"instances[{number}] should hold the inputs {listed(infos)}; received "
                f"{listed(row) or 'none'}."
            )
    return {name: [row[name] for row in named] for name in infos}


def by_name(value: Any, infos: Infos) -> Mapping[str, Any]:
    """Values by input name; a value without a name belongs to the only input."""
    # In TF Serving's JSON, {"b64": ...} is a byte string, not an input called "b64".
    if isinstance(value, dict) and set(value) != {"b64"}:
        return value
    if len(infos) != 1:
        raise invalid(f"There are {len(infos)} inputs, so each needs its name: {listed(infos)}.")
    return {next(iter(infos)): value}


def to_array(name: str, value: Any, info: TensorInfo) -> np.ndarray:
    """A JSON value as an array of the input's type; strings become an object array of bytes."""
    dtype = tf.as_dtype(info.dtype)
    if _is_deeper(value, MAX_DIMENSIONS):
        raise invalid(f"Input {name!r} is nested more than {MAX_DIMENSIONS} deep.")
    if dtype == tf.string:
        return np.array(to_bytes(name, value), dtype=object)
    # Before NumPy, which accepts true as 1, and allocates the longest length for every string.
    if not _holds_only({int} if dtype.is_integer else {int, float}, value):
        raise invalid(f"Input {name!r} should hold {dtype.name} numbers only.")
    too_large = invalid(f"Input {name!r} holds numbers that do not fit into {dtype.name}.")
    try:
        array = np.array(value)
        smallest, largest = array.min(initial=0), array.max(initial=0)
        if dtype.is_integer and not dtype.min <= smallest <= largest <= dtype.max:
            raise too_large  # astype() would keep only the low bits.
        return array.astype(dtype.as_numpy_dtype)
    except OverflowError:  # An integer that is too large for a float.
        raise too_large from None
    except ValueError:
        raise invalid(f"Input {name!r} is ragged: all rows should have the same length.") from None


def _is_deeper(value: Any, depth: int) -> bool:
    """Whether lists are nested deeper than `depth`: [[1]] is deeper than 1."""
    if not isinstance(value, list):
        return False
    return depth == 0 or any(_is_deeper(element, depth - 1) for element in value)


def _holds_only(kinds: set[type], value: Any) -> bool:
    if isinstance(value, list):
        return all(_holds_only(kinds, element) for element in value)
    return type(value) in kinds  # Not isinstance: true and false are not integers here.


def to_bytes(name: str, value: Any) -> Any:
    """JSON strings, {"b64": ...} and lists of them -> bytes in the same structure."""
    if isinstance(value, list):
        return [to_bytes(name, element) for element in value]
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace")  # JSON may hold half a surrogate pair.
    if isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except binascii.Error as error:
            raise invalid(f"Input {name!r:.80} holds bad base64: {error}.") from None
    raise invalid(
        f'Input {name!r:.80} should hold strings or {{"b64": "..."}}; received {value!r:.80}.'
    )


def to_example(features: Mapping[str, Any]) -> tf.train.Example:
    """{feature: value or list of values} -> tf.Example; strings, integers or numbers, not mixed."""
    example = tf.train.Example()
    for name, value in features.items():
        values = value if isinstance(value, list) else [value]
        kinds = {type(element) for element in values}  # Not isinstance: true is an int.
        try:
            feature = example.features.feature[name]
            if kinds <= {int}:
                feature.int64_list.value.extend(values)
            elif kinds <= {int, float}:
                feature.float_list.value.extend(values)
            else:
                feature.bytes_list.value.extend(to_bytes(name, values))
        except (ValueError, TypeError, OverflowError):
            raise invalid(
                f"Feature {name!r:.80} does not fit a tf.Example: integers are int64, numbers "
                "float32, everything else strings in a list."
            ) from None
    return example


def rows_answer(outputs: Mapping[str, np.ndarray], num_rows: int) -> list[Any]:
    """The answer in row format: for each row {output: value}, or the value of the only output."""
    for name, value in outputs.items():
        if value.ndim == 0 or len(value) != num_rows:
            raise invalid(
                f"Output {name!r} has no row for each instance: ask in column format ('inputs')."
            )
    columns = columns_answer(outputs)
    if len(outputs) == 1:
        return columns
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def columns_answer(outputs: Mapping[str, np.ndarray]) -> Any:
    """The answer in column format: {output: value}, or the value of the only output."""
    columns = {name: to_json(name, value) for name, value in outputs.items()}
    return next(iter(columns.values())) if len(columns) == 1 else columns


def to_json(name: str, value: np.ndarray) -> Any:
    """Array -> JSON value; outputs whose names end in `_bytes` are base64, as in TF Serving."""
    if value.dtype.kind not in "OS":
        return value.tolist()
    return _text(value.tolist(), as_base64=name.endswith("_bytes"))


def _text(value: Any, as_base64: bool) -> Any:
    if isinstance(value, list):
        return [_text(element, as_base64) for element in value]
    if as_base64:
        return {"b64": base64.b64encode(value).decode("ascii")}
    return value.decode("utf-8", errors="replace")
