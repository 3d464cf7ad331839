"""TF Serving's JSON formats."""

import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from export.server import json_tensors
from export.server.refusals import ServingError


def info(dtype, shape=(None, None)):
    return meta_graph_pb2.TensorInfo(
        dtype=dtype.as_datatype_enum, tensor_shape=tf.TensorShape(shape).as_proto()
    )


TEXT = {"text": info(tf.string, [None])}
PAIR = {"ids": info(tf.int32), "weights": info(tf.float32)}


def read_columns(inputs, infos):
    """The arrays by name of a request in column format."""
    values = json_tensors.by_name(inputs, infos)
    return {name: json_tensors.to_array(name, value, infos[name]) for name, value in values.items()}


def read_rows(instances, infos):
    """The same of one in row format."""
    return read_columns(json_tensors.columns_of(instances, infos), infos)


def test_rows_of_a_single_input_may_go_without_its_name():
    for instances in (
        ["a", "é"],
        [{"text": "a"}, {"text": "é"}],
        [{"b64": "YQ=="}, {"b64": "w6k="}],
    ):
        array = read_rows(instances, TEXT)["text"]
        assert array.tolist() == [b"a", "é".encode()]


def test_a_text_among_numbers_is_refused_at_once():
    """NumPy would give every element the room of the longest text: 400 MB here."""
    tracemalloc.start()
    try:
        for wrong in (["a" * 1_000_000] + [""] * 99, [None], [{"b64": "YQ=="}]):
            with pytest.raises(ServingError, match="'ids' should hold int32 numbers only"):
                read_rows([{"ids": wrong, "weights": [1]}], PAIR)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_rows_and_columns_of_several_inputs_agree():
    rows = read_rows(
        [{"ids": [1, 2], "weights": [1, 0.5]}, {"ids": [3, 4], "weights": [0, 2]}], PAIR
    )
    columns = read_columns({"ids": [[1, 2], [3, 4]], "weights": [[1, 0.5], [0, 2]]}, PAIR)
    for name, dtype in (("ids", np.int32), ("weights", np.float32)):
        assert rows[name].dtype == columns[name].dtype == dtype
        np.testing.assert_array_equal(rows[name], columns[name])


@pytest.mark.parametrize(
    ("instances", "match"),
    [
        ([{"ids": [1]}], "received ids"),
        ([[1]], "each needs its name"),
        ([{"ids": [1], "weights": [1]}, {"ids": [1, 2], "weights": [1]}], "ragged"),
        ([{"ids": [1.5], "weights": [1]}], "int32 numbers only"),
        ([{"ids": [True], "weights": [1]}], "int32 numbers only"),
        ([{"ids": [2, 3], "weights": [1.5, False]}], "'weights' should hold float32 numbers only"),
        ([{"ids": [1], "weights": [10**400]}], "do not fit into float32"),
        ([{"ids": ["1"], "weights": [1]}], "int32 numbers only"),
        ([{"ids": [2**31], "weights": [1]}], "do not fit into int32"),
    ],
)
def test_bad_rows_are_named(instances, match):
    with pytest.raises(ServingError, match=match) as error:
        read_rows(instances, PAIR)
    assert error.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("value", [[1], [None], [{"b64": "%"}], [{"b65": "YQ=="}]])
def test_bad_strings_are_refused(value):
    with pytest.raises(ServingError):
        read_rows(value, TEXT)


def test_refusals_are_short_whatever_comes():
    infos = {"x": info(tf.string, [None])}
    long = "k" * 100_000
    for parse, value in (
        (read_rows, [{long: 1}]),
        (lambda value, _: json_tensors.to_bytes(long, value), None),
    ):
        with pytest.raises(ServingError) as refusal:
            parse(value, infos)
        assert len(refusal.value.message) < 1000 and "kkk" in refusal.value.message


def test_answers_drop_the_name_of_a_single_output():
    y = np.array([[1.5], [2.0]], np.float32)
    label = np.array([b"a", "é".encode()], object)
    assert json_tensors.rows_answer({"y": y}, 2) == [[1.5], [2.0]]
    assert json_tensors.columns_answer({"y": y}) == [[1.5], [2.0]]
    assert json_tensors.rows_answer({"y": y, "label": label}, 2) == [
        {"y": [1.5], "label": "a"}, {"y": [2.0], "label": "é"}
    ]  # fmt: skip


def test_outputs_called_bytes_are_base64():
    assert json_tensors.to_json("image_bytes", np.array([b"a"], object)) == [{"b64": "YQ=="}]


def test_row_format_needs_a_row_for_each_instance():
    with pytest.raises(ServingError, match="column format"):
        json_tensors.rows_answer({"y": np.zeros([3])}, 2)
