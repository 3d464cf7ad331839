"""The preprocessor before it is saved: full length, offsets in bytes, segments.

Objects can be called once they are loaded; until then by `__call__`.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from export.probes import TEXTS
from export.signatures.preprocessor import (
    PreprocessorModule,
    expected,
    pad_to_length,
    tokenize_with_offsets,
)
from tests.export.conftest import loaded_as


@pytest.fixture(scope="module")
def module(vocabulary) -> PreprocessorModule:
    return PreprocessorModule(loaded_as(None, vocabulary, 16))


def test_padding_to_a_length():
    inputs = {name: tf.ones([2, 3], tf.int32) for name in ("input_word_ids", "input_mask")}
    padded = pad_to_length(inputs, 2, 5, pad_id=7)
    np.testing.assert_array_equal(padded["input_word_ids"], [[1, 1, 1, 7, 7]] * 2)
    np.testing.assert_array_equal(padded["input_mask"], [[1, 1, 1, 0, 0]] * 2)
    np.testing.assert_array_equal(
        pad_to_length(inputs, 2, tf.constant(3), 7)["input_mask"], [[1] * 3] * 2
    )


def test_texts_of_any_length_become_as_long_as_the_default(module):
    found = module.signatures()["serving_default"](tf.constant(["", "the market", "a b " * 40]))
    assert {name: value.shape for name, value in found.items()} == dict.fromkeys(found, (3, 16))
    assert tf.reduce_sum(found["input_mask"], axis=1).numpy().tolist()[::2] == [2, 16]


def test_offsets_are_bytes_of_the_text(module, vocabulary):
    text, encoder = "  the été market", module.text_encoder
    ids, starts, limits = module.tokenize_with_offsets.__call__(tf.constant([text]))
    assert ids.to_list() == [vocabulary.encode(text)] == encoder.tokenize([text]).to_list()
    data = text.encode()
    pieces = [data[a:b] for a, b in zip(starts.to_list()[0], limits.to_list()[0])]
    assert b"".join(pieces).replace(b" ", b"") == data.replace(b" ", b"")
    again = tokenize_with_offsets(encoder, tf.constant([text]))
    assert [each.to_list() for each in again] == [each.to_list() for each in (ids, starts, limits)]


def test_segments_and_special_tokens(module, vocabulary):
    segment = tf.ragged.constant([[7, 8]], tf.int32)
    for count in (1, 4):
        packed = module.bert_pack_inputs.__call__([segment] * count, tf.constant(14))
        cls, sep = vocabulary.cls_id, vocabulary.sep_id
        real = [cls, *[7, 8, sep] * count]
        assert packed["input_word_ids"].numpy()[0, : len(real)].tolist() == real
        assert packed["input_word_ids"].shape == [1, 14]
        assert int(tf.reduce_sum(packed["input_mask"])) == len(real)
    packed = module.bert_pack_inputs.__call__([segment])
    assert packed["input_mask"].shape == [1, 16], "the length of the texts"
    special = module.tokenize.get_special_tokens_dict.__call__()
    assert int(special["mask_id"]) == 4 and int(special["vocab_size"]) == vocabulary.vocab_size


def test_answers_have_the_full_length(module, vocabulary):
    answers = expected(loaded_as(None, vocabulary, 16)).answers["serving_default"]
    found = module.signatures()["serving_default"](tf.constant(TEXTS))
    for name, value in answers.items():
        np.testing.assert_array_equal(found[name], value)
