"""Text to a model's inputs in a graph: the ids of fine-tuning, in datasets and in Keras models."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertEncoder, AlbertPreprocessor
from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from data_pipeline.finetuning.examples import TextExample
from data_pipeline.finetuning.features import encode_texts
from data_pipeline.tokenizers.loading import load_tokenizer

GOLDENS = Path(__file__).parents[2] / "goldens"
VOCABULARIES = {
    "sentencepiece": str(GOLDENS / "hf_tokenizer" / "spiece.model"),
    "wordpiece": str(GOLDENS / "wordpiece" / "vocab.txt"),
}
LENGTH = 16
TEXTS = [
    "", " ", "the cat", "Crème Brûlée \u201cİΣ\u201d", "in 2010, or 7,",
    "我们在2010年。日本語 text", "the cat sat on the mat " * 9, "A\r\n b\tc", "\U0001f600 ﬁ",
    "[MASK] [SEP]",
]  # fmt: skip
PAIRS = [(first, second) for first in TEXTS for second in TEXTS]


@pytest.fixture(scope="module", params=VOCABULARIES)
def layer(request):
    return AlbertPreprocessor(VOCABULARIES[request.param], LENGTH)


@pytest.fixture
def sentencepiece():
    return AlbertPreprocessor(VOCABULARIES["sentencepiece"], LENGTH)


def of_finetuning(tokenizer, first, second=None):
    """What fine-tuning makes of these texts, [N, S]."""
    pairs = zip(first, second or [None] * len(first))
    examples = [TextExample("", a, b, None, "", 1) for a, b in pairs]
    return encode_texts(examples, tokenizer, LENGTH).inputs()


def assert_same(found, expected):
    assert list(found) == ["input_word_ids", "input_mask", "input_type_ids"]
    for name, values in expected.items():
        assert found[name].dtype == tf.int32
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_texts_become_what_finetuning_makes_of_them(layer):
    assert_same(layer(tf.constant(TEXTS)), of_finetuning(layer.tokenizer, TEXTS))


def test_so_do_pairs(layer):
    first, second = map(list, zip(*PAIRS))
    found = layer((tf.constant(first), tf.constant(second)))
    assert_same(found, of_finetuning(layer.tokenizer, first, second))


def test_texts_come_in_many_forms(sentencepiece):
    texts = ["the cat", "a mat"]
    single = of_finetuning(sentencepiece.tokenizer, texts)
    assert_same(sentencepiece(texts), single)
    assert_same(sentencepiece(np.array(texts)), single)
    assert_same(sentencepiece(np.array(texts, object)), single)
    assert_same(sentencepiece(tf.constant(texts)[:, None]), single)
    assert_same(sentencepiece("the cat"), {name: rows[0] for name, rows in single.items()})
    pair = of_finetuning(sentencepiece.tokenizer, texts, texts[::-1])
    assert_same(sentencepiece((texts, texts[::-1])), pair)
    assert_same(sentencepiece([texts, texts[::-1]]), pair)
    assert_same(sentencepiece(tuple(texts)), {name: rows[0] for name, rows in pair.items()})


def test_rows_are_as_long_as_the_longest_on_request():
    layer = AlbertPreprocessor(VOCABULARIES["sentencepiece"], LENGTH, pad_to_longest=True)
    assert layer(["the cat", "the"])["input_word_ids"].shape == (2, 4)
    assert layer(["the cat " * 20])["input_mask"].shape == (1, LENGTH)


def test_settings_change_the_ids():
    path = VOCABULARIES["sentencepiece"]
    cased = AlbertPreprocessor(path, LENGTH, lower=False, rules="plain")
    found, plain = cased(["The 2010,"]), load_tokenizer(path, False, "plain")
    assert_same(found, of_finetuning(plain, ["The 2010,"]))
    lower = AlbertPreprocessor(path, LENGTH)(["The 2010,"])
    assert found["input_word_ids"].numpy().tolist() != lower["input_word_ids"].numpy().tolist()


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_dataset_is_mapped_with_static_shapes(layer, batch_first):
    dataset = tf.data.Dataset.from_tensor_slices({"text": TEXTS[:6], "label": range(6)})
    if batch_first:
        dataset = dataset.batch(3, drop_remainder=True)
    dataset = dataset.map(lambda row: (layer(row["text"]), row["label"]))
    if not batch_first:
        dataset = dataset.batch(3, drop_remainder=True)
    assert dataset.element_spec[0]["input_mask"].shape == (3, LENGTH)
    rows = list(dataset)
    found = {name: np.concatenate([x[name] for x, _ in rows]) for name in rows[0][0]}
    for name, values in of_finetuning(layer.tokenizer, TEXTS[:6]).items():
        np.testing.assert_array_equal(found[name], values)


def test_functional_models_take_text_train_and_are_saved(sentencepiece, tiny_config, tmp_path):
    """Saved models need neither the vocabulary's file nor the layer that was saved."""
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    moved = AlbertPreprocessor(shutil.copy(sentencepiece.tokenizer.vocab_file, folder), LENGTH)
    config = tiny_config.replace(vocab_size=sentencepiece.tokenizer.vocab_size, num_hidden_layers=1)
    texts = [keras.Input((), dtype=tf.string, name=name) for name in ("first", "second")]
    pooled = AlbertEncoder(config)(moved(texts))["pooled_output"]
    model = keras.Model(texts, keras.layers.Dense(2, name="head")(pooled))

    first, second = map(list, zip(*PAIRS[::5]))
    pair = [tf.constant(first), tf.constant(second)]
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_layer("head").get_weights()[0].copy()
    model.fit(pair, tf.constant([0, 1] * 10), batch_size=10, verbose=0)
    assert np.any(model.get_layer("head").get_weights()[0] != before)
    inputs = of_finetuning(sentencepiece.tokenizer, first, second)
    pooled = model.get_layer("encoder")(inputs)["pooled_output"]
    expected = model.get_layer("head")(pooled).numpy()
    np.testing.assert_allclose(model(pair), expected, atol=1e-5)

    model.save(tmp_path / "model.keras")
    shutil.rmtree(folder)
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(pair), expected, atol=1e-5)


def test_saved_models_and_configurations_hold_the_vocabulary(layer, tmp_path):
    again = AlbertPreprocessor.from_config(json.loads(json.dumps(layer.get_config())))
    assert again.get_config() == layer.get_config()
    assert again.tokenizer.vocab_file != layer.tokenizer.vocab_file
    module = tf.Module()
    module.layer = again
    module.encode = tf.function(again, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    found = loaded.encode(tf.constant(TEXTS))
    for name, values in layer(tf.constant(TEXTS)).items():
        np.testing.assert_array_equal(found[name], values)


def test_a_configuration_holds_the_settings():
    layer = AlbertPreprocessor(
        VOCABULARIES["sentencepiece"], 9, lower=False, rules="plain", pad_to_longest=True, name="in"
    )
    again = AlbertPreprocessor.from_config(layer.get_config())
    assert (again.name, again.max_seq_length, again.pad_to_longest) == ("in", 9, True)
    assert again.tokenizer.settings == layer.tokenizer.settings
    assert not layer.weights


def test_a_model_folder_has_the_vocabulary_and_its_settings(tiny_config, tmp_path):
    path = VOCABULARIES["sentencepiece"]
    model = AlbertClassifier(tiny_config.replace(vocab_size=1000), 2)
    native.save(model, str(tmp_path), {}, path, {"lower": False, "rules": "plain"})
    layer = AlbertPreprocessor.from_preset(str(tmp_path), LENGTH)
    plain = load_tokenizer(path, False, "plain")
    assert_same(layer(["The 2010,"]), of_finetuning(plain, ["The 2010,"]))
    assert AlbertPreprocessor.from_preset(str(tmp_path)).max_seq_length == 128


@pytest.mark.parametrize(
    "inputs, sentence",
    [
        (tf.constant([1, 2]), "strings .* int32 with the shape"),
        (tf.constant([["a", "b"]]), "tuple of two tensors"),
        ((tf.constant(["a"]),) * 3, "received 3 inputs"),
    ],
)
def test_other_inputs_are_told_apart(sentencepiece, inputs, sentence):
    with pytest.raises(ValueError, match=sentence):
        sentencepiece(inputs)


def test_a_length_without_room_is_refused():
    with pytest.raises(UserError, match="at least 5; received 4"):
        AlbertPreprocessor(VOCABULARIES["sentencepiece"], 4)
