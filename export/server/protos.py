"""Messages of gRPC -> arrays and serialized examples, within the limits of a request."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import input_pb2

from export.server.refusals import Limits, invalid


def to_array(
    name: str, proto: tensor_pb2.TensorProto, info: meta_graph_pb2.TensorInfo, limits: Limits
) -> np.ndarray:
    """A tensor of a request, as an array of the type that the signature wants.

    Args:
      name: name of the input.
      proto: the tensor; a last value that repeats may be left out, as everywhere in TensorFlow.
      info: the input in the signature.
      limits: what the shape may amount to, which a small message can claim to be huge.

    Returns:
      The array; strings are bytes.

    Raises:
      ServingError: its type is another one, it is too large, or its values do not fit its shape.
    """
    wanted, shape = _type_name(info.dtype), [dim.size for dim in proto.tensor_shape.dim]
    if proto.dtype != info.dtype:
        raise invalid(f"Input {name!r} should be {wanted}; received {_type_name(proto.dtype)}.")
    limits.check_shape(name, tuple(shape))
    try:
        return tf.make_ndarray(proto)
    except (TypeError, ValueError, OverflowError):
        told = f"Input {name!r} holds values that do not fit its shape {shape!s:.80} of {wanted}."
        raise invalid(told) from None


def _type_name(number: int) -> str:
    try:
        return tf.as_dtype(number).name
    except (TypeError, KeyError, ValueError):
        return f"type {number}"


def serialized_examples(request_input: input_pb2.Input, limits: Limits) -> list[bytes]:
    """The tf.Examples of a request, each with the features of the context they share.

    Raises:
      ServingError: there are none, or too many.
    """
    shared = request_input.example_list_with_context
    examples = shared.examples or request_input.example_list.examples
    if not examples:
        raise invalid("The input holds no example: fill input.example_list.")
    limits.check_rows(len(examples))
    return limits.bounded_examples(_merged(shared.context, example) for example in examples)


def _merged(context: tf.train.Example, example: tf.train.Example) -> bytes:
    merged = tf.train.Example()
    for part in (context, example):
        for name, feature in part.features.feature.items():
            merged.features.feature[name].CopyFrom(feature)
    return merged.SerializeToString()
