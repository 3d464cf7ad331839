"""Tensors and examples of gRPC: what a message claims is checked before it is believed."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import input_pb2

from export.server.protos import serialized_examples, to_array
from export.server.refusals import Limits, ServingError

LIMITS = Limits(max_request_bytes=1000, max_batch_size=8, max_row_values=16)


def info(dtype):
    return meta_graph_pb2.TensorInfo(dtype=dtype.as_datatype_enum)


def claim(dtype, *shape, **fields):
    """A proto with a shape of its own choice."""
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum, **fields)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1, 2], [3, 4]], np.int32),
        np.array([1.5, 2], np.float32),
        np.array([True, False]),
        np.array([b"a", b"b"], object),
        np.zeros([0], np.int32),
        np.array(3, np.int64),
    ],
)
def test_what_clients_make_is_taken(value):
    proto = tf.make_tensor_proto(value)
    array = to_array("x", proto, info(tf.as_dtype(proto.dtype)), LIMITS)
    np.testing.assert_array_equal(array, value)


def test_a_last_value_that_repeats_may_be_left_out():
    proto = claim(tf.int32, 2, 3, int_val=[7, 8])
    assert to_array("x", proto, info(tf.int32), LIMITS).tolist() == [[7, 8, 8], [8, 8, 8]]
    proto = claim(tf.string, 3, string_val=[b"a"])
    assert to_array("x", proto, info(tf.string), LIMITS).tolist() == [b"a"] * 3


@pytest.mark.parametrize(
    ("dtype", "proto", "part"),
    [
        (tf.string, claim(tf.string, 2**31, 2**31, string_val=[b"a"]), "rows"),
        (tf.string, claim(tf.string, 8, 2**62, string_val=[b"a"]), "values in a row"),
        (tf.string, claim(tf.string, -1, string_val=[b"a"]), "negative dimension"),
        (tf.string, claim(tf.string, 2, string_val=[b"a"] * 3), r"its shape \[2\] of string"),
        (tf.string, claim(tf.string, 1, tensor_content=b"abc"), "values that do not fit"),
        (tf.int32, claim(tf.int32, 2, tensor_content=b"1234567"), r"its shape \[2\] of int32"),
        (tf.int32, claim(tf.int32, 2, tensor_content=b"1234"), "values that do not fit"),
        (tf.int32, claim(tf.int32, 1, int_val=[1, 2]), "values that do not fit"),
        (tf.string, tf.make_tensor_proto([1]), "should be string; received int32"),
        (tf.string, tensor_pb2.TensorProto(dtype=21), "should be string; received"),
        (tf.string, tensor_pb2.TensorProto(), "should be string; received type 0"),
    ],
)
def test_claims_are_compared_with_what_is_there(dtype, proto, part):
    with pytest.raises(ServingError, match=part) as error:
        to_array("x", proto, info(dtype), LIMITS)
    assert error.value.code == "INVALID_ARGUMENT"


def example(**features):
    made = tf.train.Example()
    for name, value in features.items():
        made.features.feature[name].bytes_list.value.append(value)
    return made


def test_examples_share_the_features_of_their_context():
    given = input_pb2.Input()
    given.example_list_with_context.context.CopyFrom(example(a=b"1", b=b"2"))
    given.example_list_with_context.examples.append(example(b=b"3"))
    (made,) = serialized_examples(given, LIMITS)
    assert tf.train.Example.FromString(made) == example(a=b"1", b=b"3")


def test_what_examples_share_counts_for_each_of_them():
    given = input_pb2.Input()
    given.example_list_with_context.context.CopyFrom(example(a=b"1" * 1000))
    given.example_list_with_context.examples.extend([example()] * 8)
    limits = Limits(max_request_bytes=8100, max_batch_size=8)
    assert given.ByteSize() < 2000
    with pytest.raises(ServingError, match="are larger; this server allows up to 8100 "):
        serialized_examples(given, limits)
    assert len(serialized_examples(given, Limits(max_request_bytes=9000))) == 8


@pytest.mark.parametrize(("count", "part"), [(0, "holds no example"), (9, "9 rows")])
def test_no_example_and_too_many(count, part):
    given = input_pb2.Input()
    given.example_list.examples.extend([example()] * count)
    with pytest.raises(ServingError, match=part):
        serialized_examples(given, LIMITS)
