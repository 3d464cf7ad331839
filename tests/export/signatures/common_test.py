"""What signatures share: specs, parsing, and a module whose answer is made up."""

from __future__ import annotations

import pytest
import tensorflow as tf

from export.signatures import common
from tests.export.conftest import loaded_as


class Counts(common.TextModule):
    """Answers a text with the number of its pieces, and of those of the second text."""

    def answer(self, inputs):
        second = tf.reduce_sum(inputs["input_type_ids"], axis=1)
        return {"pieces": tf.reduce_sum(inputs["input_mask"], axis=1), "second": second}


@pytest.fixture(scope="module")
def counts(vocabulary, keras_models) -> Counts:
    return Counts(loaded_as(keras_models["classifier"], vocabulary))


def test_signatures_by_text_by_pair_and_by_tokens(counts, vocabulary):
    signatures = counts.signatures()
    assert list(signatures) == [common.DEFAULT_SIGNATURE, "text_pair", "tokens"]
    text = "the market"
    length = len(vocabulary.encode(text))
    one = signatures["serving_default"](tf.constant([text]))
    assert (int(one["pieces"][0]), int(one["second"][0])) == (length + 2, 0)
    pair = signatures["text_pair"](tf.constant([text, text]), tf.constant([text, ""]))
    assert pair["pieces"].numpy().tolist() == [2 * length + 3, length + 2]
    assert pair["second"].numpy().tolist() == [length + 1, 0]
    ids = tf.ones([1, 3], tf.int32)
    tokens = signatures["tokens"](ids, ids, 1 - ids)
    assert (int(tokens["pieces"][0]), int(tokens["second"][0])) == (3, 0)


def test_variables_and_files_go_along(counts, keras_models, vocabulary_dir):
    assert counts.model_variables == keras_models["classifier"].variables
    found = {asset.asset_path.numpy().decode() for asset in counts.files}
    assert str(vocabulary_dir / "spiece.model") in found


def test_examples_with_and_without_a_second_text():
    examples = [tf.train.Example(), tf.train.Example()]
    for example, features in zip(examples, ({"text": b"a", "text_b": b"b"}, {"text": b"c"})):
        for name, value in features.items():
            example.features.feature[name].bytes_list.value.append(value)
    first, second = common.parse_texts(tf.constant([e.SerializeToString() for e in examples]))
    assert first.numpy().tolist() == [b"a", b"c"] and second.numpy().tolist() == [b"b", b""]
    with pytest.raises(tf.errors.InvalidArgumentError, match="text"):
        common.parse_texts(tf.constant([tf.train.Example().SerializeToString()]))
