"""Models inside models of Keras 3: the layers of albert_tf.keras3, and the lines of
docs/migration.md, each in a process of its own, as the order of imports is the point.
"""

import dataclasses
import importlib
import re
import sys
from pathlib import Path

import pytest

from albert_tf.checkpoints import native
from albert_tf.keras_choice import TF_VERSION
from tests.export.conftest import rows, run_in_clean_environment

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "migration.md"
with_keras_3 = pytest.mark.skipif(TF_VERSION < (2, 16), reason="this TensorFlow has no Keras 3")

BEFORE = {
    "ours first": "import albert_tf, albert_tf.keras3",
    "keras first": "import keras; keras.layers.Dense(1)",
    "tensorflow first": "import tensorflow as tf; tf.keras.layers.Dense(1)",
}
TRAIN_AND_LOAD = """
import numpy as np, tensorflow as tf

def variables():
    return {each.name: each.numpy() for each in albert.model.variables}

texts, classes = tf.constant(["the cat runs", "a dog", "paris", "water"]), tf.constant([0, 1, 0, 1])
before = variables()
losses = model.fit(texts, classes, epochs=8, verbose=0).history["loss"]
assert losses[-1] < losses[0], losses
same = [name for name, value in variables().items() if np.array_equal(value, before[name])]
assert not same, same

expected = model(texts).numpy()
model.save("model.keras")
model.save_weights("model.weights.h5")
copy = keras.models.load_model("model.keras")
np.testing.assert_array_equal(copy(texts), expected)
assert len(copy.optimizer.variables) == len(model.optimizer.variables)
copy.set_weights([0 * each for each in copy.get_weights()])
copy.load_weights("model.weights.h5")
np.testing.assert_array_equal(copy(texts), expected)
copy.fit(texts, classes, verbose=0)  # With the moments of the optimizer.

from albert_tf.keras3 import AlbertLayer
ids = {
    name: keras.Input((None,), dtype="int32", name=name)
    for name in ("input_word_ids", "input_mask", "input_type_ids")
}
layer = AlbertLayer(albert.model)
by_ids = keras.Model(ids, layer(ids)["pooled_output"])
pooled = by_ids.predict(preprocessor(texts), verbose=0)
np.testing.assert_allclose(pooled, albert(texts)["pooled_output"], atol=1e-6)
by_ids.export("exported", verbose=False)
exported = tf.saved_model.load("exported")
np.testing.assert_allclose(exported.serve(preprocessor(texts)), pooled, atol=1e-5)
try:
    AlbertLayer("albert-base-v2")
except ValueError as error:
    assert "takes a model of albert_tf" in str(error), error
else:
    raise AssertionError
"""
TRAIN_SAVED = """
import numpy as np, tensorflow as tf

inputs = {
    name: tf.ones([3, 6], tf.int32) for name in ("input_word_ids", "input_mask", "input_type_ids")
}
inputs["input_type_ids"] *= 0
ids = {name: keras.Input((None,), dtype="int32", name=name) for name in inputs}
def made(layer, optimizer):
    model = keras.Model(ids, keras.layers.Dense(2)(layer(ids)["pooled_output"]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    return model

def fit(layer, optimizer):
    before = [each.numpy() for each in layer.weights]
    model = made(layer, optimizer)
    model.fit(inputs, tf.constant([0, 1, 0]), epochs=2, verbose=0)
    changed = [np.any(each.numpy() != old) for each, old in zip(layer.weights, before)]
    return model, len(changed), sum(changed)
"""


def blocks():
    """The Python of the section on Keras 3, with the small model in place of published ones."""
    section = DOCUMENT.read_text("utf-8").partition("\n## Keras 3\n")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)


def run(program, folder):
    """Runs a program with this project in a process of its own."""
    run_in_clean_environment(sys.executable, "-c", program, cwd=folder, PYTHONPATH=str(ROOT))


@pytest.fixture
def model_folder(keras_models, vocabulary, tmp_path):
    path, settings = str(tmp_path / "small"), dataclasses.asdict(vocabulary.settings)
    native.save(keras_models["pretrainer"].encoder, path, {}, vocabulary.vocab_file, settings)
    return path


@with_keras_3
@pytest.mark.parametrize("order", rows(list(BEFORE), "ours first"))
def test_layers_train_are_saved_and_loaded(order, model_folder, tmp_path):
    lines = blocks()[0].replace("albert-base-v2", model_folder).replace("2e-5", "1e-3")
    lines = lines.replace("max_seq_length=128", "max_seq_length=16")
    seed = "import keras; keras.utils.set_random_seed(0)"
    run("\n".join([BEFORE[order], seed, lines, TRAIN_AND_LOAD]), tmp_path)


@with_keras_3
@pytest.mark.table
def test_what_is_frozen_in_a_model_stays_frozen(model_folder, tmp_path):
    lines = blocks()[0].replace("2e-5", "1e-3").replace("max_seq_length=128", "max_seq_length=16")
    made = 'AlbertEncoder.from_preset("albert-base-v2")'
    assert made in lines
    lines = lines.replace(made, "encoder").replace(
        "albert = ", f"encoder = {made}\nencoder.embeddings.trainable = False\nalbert = "
    )
    check = """
import tensorflow as tf
assert {v.path.split("/")[-1] for v in albert.non_trainable_variables} == {
    each.name.split(":")[0].replace("/", "_") for each in encoder.embeddings.variables
}
before = encoder.get_weights()
model.fit(tf.constant(["the cat", "a dog"]), tf.constant([0, 1]), verbose=0)
changed = [(old != new).any() for old, new in zip(before, encoder.get_weights())]
assert sum(changed) == len(encoder.trainable_variables) < len(changed), changed
model.save("model.keras")
copy = keras.models.load_model("model.keras")
assert len(copy.trainable_variables) == len(model.trainable_variables)
"""
    run(lines.replace("albert-base-v2", model_folder) + check, tmp_path)


@with_keras_3
def test_exported_encoders_run_and_train_by_tfsm_layers(exports, tmp_path):
    as_it_is, cured = (
        lines.replace("work/models/encoder/1", exports.paths["encoder"]) for lines in blocks()[1:]
    )
    check = """
import pytest
expected = tf.saved_model.load(PATH)(inputs)["pooled_output"]
np.testing.assert_allclose(encoder(inputs)["pooled_output"], expected, atol=1e-5)
_, number, changed = fit(encoder, keras.optimizers.SGD(0.1))
assert number == changed > 20
with pytest.raises(ValueError, match="is not a valid scope name"):
    fit(encoder, keras.optimizers.Adam())
with pytest.raises(Exception):
    keras.layers.TFSMLayer(PATH, call_endpoint="serving_default")(inputs)
"""
    cure = """
model, number, changed = fit(encoder, keras.optimizers.Adam())
assert number == changed > 20
assert np.any(encoder(inputs, training=True)["pooled_output"] != encoder(inputs)["pooled_output"])
model.save("model.keras")
with pytest.raises(ValueError, match="safe_mode=False"):
    keras.models.load_model("model.keras")
copy = keras.models.load_model("model.keras", safe_mode=False)
np.testing.assert_allclose(copy(inputs), model(inputs), atol=1e-6)
"""
    program = as_it_is + TRAIN_SAVED + check + cured + cure
    run(program.replace("PATH", repr(exports.paths["encoder"])), tmp_path)


@pytest.mark.skipif(TF_VERSION >= (2, 16), reason="this TensorFlow has Keras 3")
def test_without_keras_3_the_import_says_what_is_needed():
    with pytest.raises(ImportError, match=r"needs Keras 3 .*TensorFlow 2\.16 and later"):
        importlib.import_module("albert_tf.keras3")
