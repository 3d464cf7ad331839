"""The encoder and the preprocessor through TF-Hub's own doors."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub as hub
import tensorflow_text  # noqa: F401  (the preprocessor's ops)

from albert_tf.keras_compat import keras
from data_pipeline.finetuning.alignment import align
from export.encoding import encode_batch
from export.tasks import export_model

TEXTS = ["the cat", "Café, 2010, and then a dog", "every man who looked at the river"]


@pytest.fixture(scope="module")
def encoder(exports):
    return hub.load(exports.paths["encoder"])


@pytest.fixture(scope="module")
def preprocessor(exports):
    return hub.load(exports.paths["preprocessor"])


@pytest.fixture
def inputs(vocabulary):
    return {name: tf.constant(value) for name, value in encode_batch(vocabulary, TEXTS, 48).items()}


def test_gradients_are_those_of_layers_that_read_their_weights_each(exports, encoder, inputs):
    """Without dropout a served layer reads with those that share its weights."""
    own = exports.models["pretrainer"].encoder

    def gradients(call, variables):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(call(inputs)["sequence_output"]))
        return tape.gradient(loss, variables, unconnected_gradients="zero")

    expected = gradients(functools.partial(own, output_attentions=True), own.trainable_variables)
    found = gradients(encoder, encoder.trainable_variables)
    for one, other, variable in zip(found, expected, own.trainable_variables, strict=True):
        one, other = map(tf.convert_to_tensor, (one, other))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=variable.name)


def classifier_of(path, rate=0.1):
    """(layer, model): two classes by an encoder that is trained with them."""
    layer = hub.KerasLayer(path, trainable=True)
    specs = {
        name: keras.Input([None], dtype=tf.int32, name=name)
        for name in ("input_word_ids", "input_mask", "input_type_ids")
    }
    model = keras.Model(specs, keras.layers.Dense(2)(layer(specs)["pooled_output"]))
    model.compile(
        keras.optimizers.SGD(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    return layer, model


def test_keras_layer_trains_the_encoder(exports, preprocessor, vocabulary):
    layer, model = classifier_of(exports.paths["encoder"])
    before = [variable.numpy() for variable in layer.trainable_weights]
    model.fit(preprocessor(tf.constant(TEXTS)), np.array([0, 1, 1]), epochs=1, verbose=0)
    changed = sum(not np.array_equal(old, new) for old, new in zip(before, layer.trainable_weights))
    assert len(before) == len(exports.models["pretrainer"].encoder.trainable_variables)
    # A key's bias has no gradient but rounding: softmax ignores it.
    assert changed >= len(before) - 1


@pytest.mark.table
@pytest.mark.parametrize("stored", ["bfloat16", pytest.param("float16", marks=pytest.mark.long)])
def test_an_encoder_in_fewer_bits_learns(model_dirs, tmp_path, inputs, stored):
    """In that precision: its matrices change, too."""
    folder = str(tmp_path / "encoder")
    path = export_model(model_dirs["pretrainer"], folder, "encoder", precision=stored).path
    layer, model = classifier_of(path, rate=0.05)
    matrices = [weight for weight in layer.trainable_weights if weight.shape.rank == 2]
    assert {weight.dtype.name for weight in matrices} == {stored}
    before = [weight.numpy() for weight in matrices]
    classes = np.array([0, 1, 1])
    loss = model.evaluate(inputs, classes, verbose=0)
    model.fit(inputs, classes, epochs=10, verbose=0)
    assert model.evaluate(inputs, classes, verbose=0) < 0.8 * loss
    assert not any(np.array_equal(old, new.numpy()) for old, new in zip(before, matrices))


def test_encoder_loads_under_a_strategy(exports, two_devices, inputs):
    with two_devices.scope():
        encoder = hub.load(exports.paths["encoder"])
    outputs = two_devices.run(lambda: encoder(inputs)["pooled_output"])
    first, second = two_devices.experimental_local_results(outputs)
    np.testing.assert_array_equal(first, second)


@pytest.mark.table
def test_keras_layer_trains_on_two_devices(exports, two_devices, inputs):
    with two_devices.scope():
        layer, model = classifier_of(exports.paths["encoder"])
    before = [weight.numpy() for weight in layer.trainable_weights]
    batch = {name: tf.repeat(value[:2], 2, axis=0) for name, value in inputs.items()}
    model.fit(batch, np.array([0, 0, 1, 1]), batch_size=4, epochs=1, verbose=0)
    changed = [not np.array_equal(old, new) for old, new in zip(before, layer.trainable_weights)]
    assert sum(changed) >= len(before) - 1
    for weight in layer.trainable_weights:
        copies = [copy.numpy() for copy in two_devices.experimental_local_results(weight)]
        assert len(copies) == 2
        np.testing.assert_array_equal(*copies)


@pytest.mark.table
def test_encoder_of_a_classifier_can_be_exported_too(model_dirs, tmp_path, keras_models, inputs):
    path = export_model(model_dirs["classifier"], str(tmp_path / "encoder"), "encoder").path
    expected = keras_models["classifier"].encoder(inputs, training=False)["pooled_output"]
    loaded = hub.load(path)
    np.testing.assert_allclose(loaded(inputs)["pooled_output"], expected, atol=1e-5)
    assert not hasattr(loaded, "mlm"), "it has no head for masked words"


def test_pairs_are_cut_as_in_training(preprocessor, vocabulary):
    first, second = TEXTS, ["house", "", "the dog runs slowly"]
    tokens = [preprocessor.tokenize(tf.constant(texts)) for texts in (first, second)]
    outputs = preprocessor.bert_pack_inputs(tokens, seq_length=12)
    for name, value in encode_batch(vocabulary, first, 12, second).items():
        np.testing.assert_array_equal(outputs[name], value)


def test_tokens_know_their_bytes(preprocessor, vocabulary):
    text = "Ça va à 10,000 Cafe\u0301s, ﬁn 中文"
    tokens, starts, limits = (
        part.numpy()[0].tolist() for part in preprocessor.tokenize_with_offsets(tf.constant([text]))
    )
    expected = align(vocabulary, text)
    assert tokens == expected.ids.tolist()
    found = [text.encode()[start:limit].decode() for start, limit in zip(starts, limits)]
    assert found == [text[a : b + 1] for a, b in zip(expected.starts, expected.ends)]


def test_several_segments(preprocessor, vocabulary):
    """The type of all after the first is 1: ALBERT knows two."""
    texts = [["the cat"], ["dog runs slowly"], [""], ["paris"]]
    tokens = [preprocessor.tokenize(tf.constant(each)) for each in texts]
    outputs = preprocessor.bert_pack_inputs(tokens, seq_length=tf.constant(32))
    first, second, _, last = (vocabulary.encode(each[0]) for each in texts)
    ids = [2, *first, 3, *second, 3, *last, 3]
    assert outputs["input_word_ids"].numpy().tolist() == [ids + [0] * (32 - len(ids))]
    types = [0] * (len(first) + 2) + [1] * (len(ids) - len(first) - 2)
    assert outputs["input_type_ids"].numpy().tolist() == [types + [0] * (32 - len(ids))]
    short = preprocessor.bert_pack_inputs(tokens[:3], seq_length=7)["input_word_ids"].numpy()
    assert short.shape == (1, 7) and np.count_nonzero(short == 3) == 2


def test_keras_layer_trains_masked_words(encoder, inputs):
    layer = hub.KerasLayer(encoder.mlm, trainable=True)
    specs = {name: keras.Input([None], dtype=tf.int32, name=name) for name in inputs}
    specs["masked_lm_positions"] = keras.Input([2], dtype=tf.int32, name="masked_lm_positions")
    model = keras.Model(specs, layer(specs)["mlm_logits"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    before = [weight.numpy() for weight in layer.trainable_weights]
    asked = {**inputs, "masked_lm_positions": tf.constant([[1, 2], [3, 0], [1, 1]])}
    words = np.array([[5, 6], [7, 8], [9, 9]])
    losses = model.fit(asked, words, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    changed = sum(not np.array_equal(old, new) for old, new in zip(before, layer.trainable_weights))
    assert len(before) == len(encoder.mlm.trainable_variables)
    assert changed >= len(before) - 3  # Keys' biases and the pooler have no gradient.
