"""Requests of gRPC -> arrays and serialized examples, each claim checked before it is believed."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import input_pb2

from export.server.errors import ServingError, invalid
from export.server.limits import Limits

# Type -> the field of a TensorProto that holds its values one by one.
_FIELDS = {
    tf.float16: "half_val",
    tf.bfloat16: "half_val",
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.int8: "int_val",
    tf.int16: "int_val",
    tf.int32: "int_val",
    tf.uint8: "int_val",
    tf.int64: "int64_val",
    tf.bool: "bool_val",
    tf.string: "string_val",
}


def to_array(
    name: str, proto: tensor_pb2.TensorProto, info: meta_graph_pb2.TensorInfo, limits: Limits
) -> np.ndarray:
    """A tensor of a request, as an array of the type that the signature wants.

    Args:
      name: name of the input.
      proto: the tensor; a last value that repeats may be left out, as everywhere in TensorFlow.
      info: the input in the signature.
      limits: what the tensor may amount to once expanded.

    Returns:
      The array; strings are bytes.

    Raises:
      ServingError: its type is another one, or values and shape do not fit each other.
    """
    wanted = tf.as_dtype(info.dtype)
    if proto.dtype != info.dtype:
        received = _type_name(proto.dtype)
        raise invalid(f"Input {name!r} should be {wanted.name}; received {received}.")
    if proto.tensor_shape.unknown_rank:
        raise _malformed(name, "its rank is unknown")
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    if min(shape, default=0) < 0:
        raise _malformed(name, f"its shape {_shown(shape)} has a negative dimension")
    limits.check_shape(name, shape)
    _check_values(name, proto, wanted, math.prod(shape), limits)
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, IndexError) as error:
        raise _malformed(name, str(error).splitlines()[0]) from None


def _check_values(
    name: str, proto: tensor_pb2.TensorProto, dtype: tf.DType, count: int, limits: Limits
) -> None:
    """Compares the number of elements that a shape claims with the values that are there."""
    if proto.tensor_content:
        if dtype == tf.string or len(proto.tensor_content) != count * dtype.size:
            raise _malformed(
                name, f"{len(proto.tensor_content)} bytes are no {count} values of {dtype.name}"
            )
        return
    values = getattr(proto, _FIELDS.get(dtype, "string_val"))
    if len(values) > count or (count and not values):
        raise _malformed(name, f"it has {len(values)} values, its shape {count}")
    if dtype == tf.string and values:
        expanded = sum(map(len, values)) + (count - len(values)) * len(values[-1])
        if expanded > limits.max_request_bytes:
            raise _malformed(
                name, f"its repeated value makes {expanded} bytes of a smaller message"
            )


def _type_name(number: int) -> str:
    try:
        return tf.as_dtype(number).name
    except (TypeError, KeyError, ValueError):
        return f"type {number}"


def _shown(shape: tuple[int, ...]) -> str:
    return str(list(shape))[:80]


def _malformed(name: str, why: str) -> ServingError:
    return invalid(f"Input {name!r} is no valid tensor: {why}.")


def serialized_examples(request_input: input_pb2.Input, limits: Limits) -> list[bytes]:
    """The tf.Examples of a request, each with the features of the context they share.

    Raises:
      ServingError: there are none, or too many.
    """
    kind = request_input.WhichOneof("kind")
    if kind == "example_list":
        listed, context = request_input.example_list.examples, None
    elif kind == "example_list_with_context":
        with_context = request_input.example_list_with_context
        listed, context = with_context.examples, with_context.context
    else:
        listed, context = [], None
    if not listed:
        raise invalid("The input holds no example: fill input.example_list.")
    limits.check_rows(len(listed))
    if context is None:
        return [example.SerializeToString() for example in listed]
    return limits.bounded_examples(_merged(context, example) for example in listed)


def _merged(context: tf.train.Example, example: tf.train.Example) -> bytes:
    merged = tf.train.Example()
    for part in (context, example):
        for name, feature in part.features.feature.items():
            merged.features.feature[name].CopyFrom(feature)
    return merged.SerializeToString()
