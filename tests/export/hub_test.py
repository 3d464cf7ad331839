"""The encoder and the preprocessor through TF-Hub's own doors."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub as hub
import tensorflow_text  # noqa: F401  (the preprocessor's ops)

from albert_tf.keras_compat import keras
from data_pipeline.finetuning.alignment import align
from export.encoding import encode_batch
from export.signatures.encoder import encoder_probes
from export.signatures.preprocessor import preprocessor_probes
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


def test_encoder_equals_keras(exports, encoder, inputs):
    expected = exports.models["pretrainer"].encoder(inputs, training=False)
    outputs = encoder(inputs)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(outputs[name], expected[name], atol=1e-5)
    np.testing.assert_array_equal(outputs["default"], outputs["pooled_output"])
    assert len(outputs["encoder_outputs"]) == 2
    np.testing.assert_allclose(
        outputs["encoder_outputs"][0], expected["encoder_outputs"][0], atol=1e-5
    )
    served = encoder.signatures["serving_default"](**inputs)
    assert set(served) == {"sequence_output", "pooled_output"}
    np.testing.assert_allclose(served["pooled_output"], expected["pooled_output"], atol=1e-5)


def test_attributes_of_the_reusable_api(exports, encoder):
    own = exports.models["pretrainer"].encoder
    assert len(encoder.variables) == len(own.variables)
    assert len(encoder.trainable_variables) == len(own.trainable_variables)
    assert list(encoder.regularization_losses) == []


def test_dropout_acts_only_in_training(encoder, inputs):
    def pooled(training):
        return encoder(inputs, training=training)["pooled_output"].numpy()

    np.testing.assert_array_equal(pooled(False), pooled(False))
    assert np.abs(pooled(True) - pooled(True)).max() > 1e-3


def test_keras_layer_trains_the_encoder(exports, preprocessor, vocabulary):
    layer = hub.KerasLayer(exports.paths["encoder"], trainable=True)
    specs = {
        name: keras.Input([None], dtype=tf.int32, name=name)
        for name in ("input_word_ids", "input_mask", "input_type_ids")
    }
    model = keras.Model(specs, keras.layers.Dense(2)(layer(specs)["pooled_output"]))
    model.compile(
        keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    before = [variable.numpy() for variable in layer.trainable_weights]
    model.fit(preprocessor(tf.constant(TEXTS)), np.array([0, 1, 1]), epochs=1, verbose=0)
    changed = sum(not np.array_equal(old, new) for old, new in zip(before, layer.trainable_weights))
    assert len(before) == len(exports.models["pretrainer"].encoder.trainable_variables)
    assert (
        changed >= len(before) - 1
    )  # A key's bias has no gradient but rounding: softmax ignores it.


def test_encoder_loads_under_a_strategy(exports, two_devices, inputs):
    with two_devices.scope():
        encoder = hub.load(exports.paths["encoder"])
    outputs = two_devices.run(lambda: encoder(inputs)["pooled_output"])
    first, second = two_devices.experimental_local_results(outputs)
    np.testing.assert_array_equal(first, second)


def test_encoder_of_a_classifier_can_be_exported_too(model_dirs, tmp_path, keras_models, inputs):
    path = export_model(model_dirs["classifier"], str(tmp_path / "encoder"), "encoder").path
    expected = keras_models["classifier"].encoder(inputs, training=False)["pooled_output"]
    np.testing.assert_allclose(hub.load(path)(inputs)["pooled_output"], expected, atol=1e-5)


def test_preprocessor_pads_to_the_default_length(preprocessor, inputs):
    outputs = preprocessor(tf.constant(TEXTS))
    length = inputs["input_mask"].shape[1]
    for name, value in inputs.items():
        assert outputs[name].shape == (3, 48)
        np.testing.assert_array_equal(outputs[name][:, :length], value)
        assert not np.any(outputs[name][:, length:])


@pytest.mark.parametrize("length", [12, 64])
def test_tokenize_and_pack_pairs(preprocessor, vocabulary, length):
    first, second = TEXTS, ["house", "", "the dog runs slowly"]
    tokens = [preprocessor.tokenize(tf.constant(texts)) for texts in (first, second)]
    assert [row.tolist() for row in tokens[0].numpy()] == [
        vocabulary.encode(text) for text in first
    ]
    outputs = preprocessor.bert_pack_inputs(tokens, seq_length=length)
    expected = encode_batch(vocabulary, first, length, second)
    for name, value in expected.items():
        assert outputs[name].shape == (3, length)
        np.testing.assert_array_equal(outputs[name][:, : value.shape[1]], value)


def test_tokens_know_their_bytes(preprocessor, vocabulary):
    text = "Ça va à 10,000 Cafe\u0301s, ﬁn 中文"
    tokens, starts, limits = (
        part.numpy()[0].tolist() for part in preprocessor.tokenize_with_offsets(tf.constant([text]))
    )
    expected = align(vocabulary, text)
    assert tokens == expected.ids.tolist()
    found = [text.encode()[start:limit].decode() for start, limit in zip(starts, limits)]
    assert found == [text[a : b + 1] for a, b in zip(expected.starts, expected.ends)]


def test_special_tokens(preprocessor, vocabulary):
    special = preprocessor.tokenize.get_special_tokens_dict()
    assert {name: int(value) for name, value in special.items()} == {
        "vocab_size": vocabulary.vocab_size, "start_of_sequence_id": 2, "end_of_segment_id": 3,
        "padding_id": 0, "mask_id": 4,
    }  # fmt: skip


def test_probes_of_encoder_and_preprocessor(vocabulary):
    def encoder(inputs, training):
        wide = tf.cast(inputs["input_word_ids"], tf.float32)
        return {"sequence_output": wide, "pooled_output": wide[:, 0], "more": wide}

    found = encoder_probes(encoder, vocabulary, 48)
    assert [probe.signature for probe in found] == ["serving_default", "tokens"]
    assert set(found[0].expected) == {"sequence_output", "pooled_output"}
    [probe] = preprocessor_probes(vocabulary, 200)
    for name, values in probe.expected.items():
        assert values.shape == (6, 200)
        lengths = probe.expected["input_mask"].sum(axis=1)
        filler = vocabulary.pad_id if name == "input_word_ids" else 0
        assert (values[2, lengths[2] :] == filler).all()
    assert lengths[2] == 2 and lengths[5] > 100
