"""Weights in few bits: every task in every precision, and what is refused."""

import dataclasses
import itertools
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.models import AlbertClassifier
from data_pipeline.errors import UserError
from export import precision
from export.precision import PRECISIONS, StoredMatrix, quantize
from export.saved_model import MANIFEST_FILE, TOLERANCE
from export.tasks import TASKS, export_model
from tests.export.conftest import EXPORTED
from tests.export.saved_model_test import CORE_OPS, TEXT_OPS, ops_of

COMPACT = PRECISIONS[1:]
_TOKENS = ("input_word_ids", "input_mask", "input_type_ids")
# Precision -> bytes of a weight in a matrix, and its largest error as a share of the largest one.
STORED = {"bfloat16": (2, 2**-8), "float16": (2, 2**-11), "int8": (1, 0.5 / 127)}


@pytest.mark.parametrize("stored", COMPACT)
@pytest.mark.parametrize("output_axis", [0, 1])
def test_a_stored_matrix_reads_as_the_matrix(stored, output_axis):
    values = np.random.default_rng(0).normal(size=[6, 5]).astype(np.float32)
    values[:, 2] *= 100  # A scale for each output: others are as exact as before.
    values[3] = 0
    matrix = StoredMatrix(values, stored, output_axis, "kernel")
    read = tf.convert_to_tensor(matrix).numpy()
    largest = np.abs(values).max(axis=1 - output_axis, keepdims=True)
    assert (np.abs(read - values) <= STORED[stored][1] * largest + 1e-7).all()
    assert (read[3] == 0).all()
    assert read.dtype == np.float32
    ids = np.array([[4, 0], [3, 5]])
    np.testing.assert_array_equal(tf.gather(matrix, ids), read[ids])
    np.testing.assert_array_equal(matrix[:2], read[:2])
    np.testing.assert_array_equal(tf.matmul(values.T, matrix), tf.matmul(values.T, read))


def test_quantize_takes_the_closest_integers():
    stored, scales = quantize(np.array([[1.0, -127.0], [0.25, 63.4]], np.float32), 1)
    np.testing.assert_array_equal(stored, [[127, -127], [32, 63]])
    np.testing.assert_allclose(scales, [[1 / 127, 1.0]])


def test_layers_that_share_a_matrix_expand_it_once():
    matrix = StoredMatrix(np.ones([2, 2], np.float32), "int8", 1, "kernel")

    @tf.function
    def twice(x):
        return tf.matmul(tf.matmul(x, matrix), matrix)

    graph = twice.get_concrete_function(tf.TensorSpec([2, 2])).graph
    assert [node.op for node in graph.as_graph_def().node].count("Cast") == 1


def test_weights_beyond_float16_are_refused(config):
    model = AlbertClassifier(config, 2)
    model.encoder.pooler.kernel[0, 0].assign(1e5)
    with pytest.raises(UserError, match=r"precision=float16.*1e\+05.*65504.*bfloat16"):
        precision.store(model, "float16")


# Every task in one precision, in turn, and the classifier in all: signatures do not know of any.
PAIRS = [
    *zip(TASKS, itertools.cycle(COMPACT)),
    *(("classifier", stored) for stored in COMPACT[1:]),
]


@pytest.fixture(scope="module")
def stored_exports(model_dirs, tmp_path_factory):
    """(task, precision) -> its export, for all of PAIRS."""
    root = tmp_path_factory.mktemp("stored")
    return {
        (task, stored): export_model(
            model_dirs[EXPORTED[task]], str(root / stored / task), task, precision=stored
        )
        for task, stored in PAIRS
    }


@pytest.mark.parametrize(("task", "stored"), PAIRS)
def test_every_task_keeps_its_contract(exports, stored_exports, task, stored):
    exported = stored_exports[task, stored]
    assert exported.max_difference <= TOLERANCE  # From a Keras model with the same weights.
    assert exported.signatures == exports.results[task].signatures
    assert not sorted(ops_of(exported.path) - TEXT_OPS - set(CORE_OPS.split()))
    found = exported.comparison
    assert (found.precision, found.accuracy) == (stored, None)
    with open(os.path.join(exported.path, MANIFEST_FILE)) as file:
        manifest = json.load(file)
    assert manifest["comparison"] == dataclasses.asdict(found)
    assert manifest["weights_bytes"] == exported.weights_bytes
    if task == "preprocessor":  # It has no weights, and no numbers to differ.
        assert not found.differences
    else:
        assert 0 < max(found.differences.values())


@pytest.mark.parametrize("stored", COMPACT)
def test_matrices_are_stored_in_few_bits(exports, stored_exports, stored):
    """The rest is vectors, scales and the checkpoint's own table of objects."""
    model = exports.models["classifier"]
    saved = sum(
        (4 - STORED[stored][0]) * variable.shape.num_elements()
        for variable in model.variables
        if variable.shape.rank == 2
    )
    before = exports.results["classifier"]
    after = stored_exports["classifier", stored]
    assert before.weights_bytes - after.weights_bytes > 0.8 * saved
    assert after.comparison.float32_bytes == sum(v.numpy().nbytes for v in model.variables)
    assert max(after.comparison.differences.values()) < 0.1


@pytest.mark.parametrize("stored", COMPACT)
def test_two_exports_have_the_same_hashes(model_dirs, stored_exports, stored, tmp_path):
    first = stored_exports["classifier", stored]
    again = export_model(
        model_dirs["classifier"], str(tmp_path / "again"), "classifier", precision=stored
    )
    assert again.graph_sha256 == first.graph_sha256
    assert again.weights_sha256 == first.weights_sha256


def test_a_hub_encoder_trains_what_is_no_integer(stored_exports, model_dirs, tmp_path):
    """Half precision trains as a whole; of int8 the vectors do, and gradients pass through."""
    tokens = {name: tf.ones([2, 4], tf.int32) for name in _TOKENS}
    for stored, is_whole in (("int8", False), ("bfloat16", True)):
        path = str(tmp_path / stored)
        found = export_model(model_dirs["pretrainer"], path, "encoder", precision=stored)
        encoder = tf.saved_model.load(found.path)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(encoder(tokens, training=True)["pooled_output"])
        variables = encoder.trainable_variables
        assert all(each is not None for each in tape.gradient(loss, variables))
        assert any(variable.shape.rank == 2 for variable in variables) == is_whole


def test_an_unknown_precision_is_refused(model_dirs, tmp_path):
    with pytest.raises(UserError, match="--precision=int4 is not one of float32, bfloat16"):
        export_model(model_dirs["classifier"], str(tmp_path), "classifier", precision="int4")
