"""Weights in few bits: every task in every precision, and what is refused."""

import dataclasses
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from export import precision
from export.precision import FLOAT32, PRECISIONS, StoredMatrix, quantize
from export.saved_model import MANIFEST_FILE
from export.tasks import TASKS, export_model
from tests.export.conftest import EXPORTED, Made, rows
from tests.export.saved_model_test import CORE_OPS, TEXT_OPS, ops_of
from tests.export.signatures.every_task_test import CONTRACT

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
    with tf.GradientTape() as tape:
        product = tf.matmul(values.T, matrix)
    np.testing.assert_array_equal(product, tf.matmul(values.T, read))
    trained = matrix.trainable_variables  # Integers have no gradient.
    assert [variable.dtype.name for variable in trained] == [stored] * (stored != "int8")
    assert all(gradient is not None for gradient in tape.gradient(product, trained))


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


# Every task that has weights in one precision, in turn: signatures do not know of any. The first
# that has integers stands for all where every task is not the point.
PAIRS = dict(zip((task for task in TASKS if task != "preprocessor"), itertools.cycle(COMPACT)))
WHOLE = "masked_lm"


@pytest.fixture(scope="module")
def stored_exports(model_dirs, tmp_path_factory):
    """Task -> its export in the precision of PAIRS."""
    root = tmp_path_factory.mktemp("stored")

    def export(task):
        folder = model_dirs[EXPORTED[task]]
        return export_model(folder, str(root / task), task, precision=PAIRS[task])

    return Made(export)


@pytest.mark.parametrize(("task", "stored"), rows(PAIRS.items(), (WHOLE, "int8")))
def test_every_task_keeps_its_contract(keras_models, stored_exports, task, stored):
    exported = stored_exports[task]
    assert exported.max_difference <= 1e-5  # From a Keras model with the same weights.
    default, others, warmup_requests = CONTRACT[task]
    assert set(exported.signatures) == {"serving_default"} | others
    assert set(exported.signatures["serving_default"]["inputs"]) == default
    assert exported.warmup_requests == warmup_requests
    assert not sorted(ops_of(exported.path) - TEXT_OPS - set(CORE_OPS.split()))
    found = exported.comparison
    assert (found.precision, found.accuracy) == (stored, None)
    with open(os.path.join(exported.path, MANIFEST_FILE)) as file:
        manifest = json.load(file)
    assert manifest["comparison"] == dataclasses.asdict(found)
    assert manifest["weights_bytes"] == exported.weights_bytes
    variables = keras_models[EXPORTED[task]].variables
    assert found.float32_bytes == sum(variable.numpy().nbytes for variable in variables)
    # What is no matrix: vectors, scales and the checkpoint's own table of objects.
    vectors = sum(v.shape.num_elements() for v in variables if v.shape.rank == 1)
    matrices = [v.shape for v in variables if v.shape.rank == 2]
    expected = 4 * (vectors + sum(map(max, matrices)))
    expected += STORED[stored][0] * sum(shape.num_elements() for shape in matrices)
    assert exported.weights_bytes < expected + 15_000
    assert max(found.differences.values()) > 0
    if task in ("classifier", "regression"):  # Probabilities and logits near 0.
        assert max(found.differences.values()) < 0.05


@pytest.fixture(scope="module")
def large(config, vocabulary_dir, tmp_path_factory):
    """(variables, folder) of a model whose weights are much larger than its graph."""
    sizes = {"vocab_size": 4000, "embedding_size": 128, "hidden_size": 1024}
    wide = config.replace(**sizes, intermediate_size=4096, initializer_range=0.02)
    model = AlbertPretrainer(wide)
    folder = str(tmp_path_factory.mktemp("large") / "model")
    settings = dataclasses.asdict(TokenizerSettings())
    native.save(model, folder, {}, str(vocabulary_dir / "spiece.model"), settings)
    return model.variables, folder


@pytest.mark.table  # What is small beside a graph is measured above.
@pytest.mark.parametrize("stored", [FLOAT32, "int8"])  # The others are written as these are.
def test_an_export_is_hardly_larger_than_its_weights(large, tmp_path, stored):
    """Without what goes along: the vocabulary, the warm-up requests, the manifest."""
    variables, folder = large
    path = Path(export_model(folder, str(tmp_path / "words"), "masked_lm", precision=stored).path)
    files = [file for file in path.rglob("*") if "assets" not in str(file.relative_to(path))]
    on_disk = sum(file.stat().st_size for file in files if file.is_file())
    width = 4 if stored == FLOAT32 else STORED[stored][0]
    weights = sum(v.shape.num_elements() * (width if v.shape.rank == 2 else 4) for v in variables)
    assert weights < on_disk <= 1.1 * weights


@pytest.mark.table
def test_two_exports_have_the_same_hashes(model_dirs, stored_exports, tmp_path):
    """Of int8, whose scales are computed."""
    first, folder = stored_exports[WHOLE], model_dirs[EXPORTED[WHOLE]]
    again = export_model(folder, str(tmp_path / "again"), WHOLE, precision="int8")
    assert again.graph_sha256 == first.graph_sha256
    assert again.weights_sha256 == first.weights_sha256


@pytest.mark.table
def test_a_hub_encoder_of_integers_trains_its_vectors(stored_exports):
    """Integers have no gradient; it passes through them all the same."""
    encoder = tf.saved_model.load(stored_exports["encoder"].path)
    tokens = {name: tf.ones([2, 4], tf.int32) for name in _TOKENS}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(tokens, training=True)["pooled_output"])
    variables = encoder.trainable_variables
    assert variables and all(variable.shape.rank == 1 for variable in variables)
    assert all(gradient is not None for gradient in tape.gradient(loss, variables))


@pytest.mark.parametrize(
    ("task", "stored", "message"),
    [
        ("classifier", "int4", "--precision=int4 is not one of float32, bfloat16"),
        ("preprocessor", "int8", "--precision=int8 .* --task=preprocessor: it has no weights"),
    ],
)
def test_a_precision_is_refused(model_dirs, tmp_path, task, stored, message):
    with pytest.raises(UserError, match=message):
        export_model(model_dirs["classifier"], str(tmp_path), task, precision=stored)
