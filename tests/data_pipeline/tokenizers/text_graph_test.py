"""Strings to encoder inputs in a graph, held equal to the Python twin."""

import inspect
import itertools
import statistics
import textwrap
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.tokenizers import text_graph
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.text_graph import TextEncoder
from export import encoding

TEXTS = [
    *("", " ", "the cat", "Café “quoted” in 2010, 3.0,", "the cat " * 40, "日本語 text"),
    "\U0001f600 ﬁ",
    *("[MASK]", "[MASK].", "a [MASK] b [MASK]", "[MASK][MASK](x", " [MASK]\tthe", "un[MASK]s"),
    "[mask] [CLS] [SEP]",
]


MODEL = Path(__file__).parents[2] / "goldens" / "hf_tokenizer" / "spiece.model"


@pytest.fixture(scope="module")
def vocabulary():
    return SentencePieceTokenizer(str(MODEL))


@pytest.fixture(scope="module")
def encode(vocabulary):
    """The graph for a maximal length of 16: of texts, of pairs, and of texts with masks."""
    tokenizer, text = graph_tokenizer(vocabulary), tf.TensorSpec([None], tf.string)
    graphs = {}
    for num_texts, masks in ((1, False), (2, False), (1, True)):
        function = tf.function(TextEncoder(tokenizer, vocabulary, 16, masks).__call__)
        graphs[num_texts, masks] = function.get_concrete_function(*[text] * num_texts)

    def run(texts, pairs=None, masks=False):
        arguments = [tf.constant(part, tf.string) for part in (texts, pairs) if part is not None]
        answer = graphs[len(arguments), masks](*arguments)
        return {name: value.numpy() for name, value in answer.items()}

    return run


def assert_same(got, expected):
    assert set(got) == {"input_word_ids", "input_mask", "input_type_ids"}
    for name, value in expected.items():
        assert got[name].dtype == np.int32
        np.testing.assert_array_equal(got[name], value, err_msg=name)


def test_single_texts_equal_what_training_sees(encode, vocabulary):
    assert_same(encode(TEXTS), encoding.encode_batch(vocabulary, TEXTS, 16))


def test_texts_with_masks_equal_python(encode, vocabulary):
    assert_same(encode(TEXTS, masks=True), encoding.encode_masked_batch(vocabulary, TEXTS, 16))


def test_pairs_equal_what_training_sees(encode, vocabulary):
    first, second = zip(*itertools.product(TEXTS, TEXTS))
    assert_same(
        encode(list(first), list(second)), encoding.encode_batch(vocabulary, first, 16, second)
    )


def test_many_real_lines_equal_what_training_sees(encode, vocabulary):
    source = "\n".join(
        inspect.getsource(module) for module in (textwrap, inspect, statistics, np.ma.core)
    )
    lines = [line for line in source.splitlines() if line.strip()][:4000]
    assert len(lines) == 4000
    for start in range(0, len(lines), 1000):
        part = lines[start : start + 1000]
        assert_same(encode(part), encoding.encode_batch(vocabulary, part, 16))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab [MASK].,1é\n", max_size=30), min_size=1, max_size=4))
def test_any_text_with_masks_equals_python(encode, vocabulary, texts):
    assert_same(encode(texts, masks=True), encoding.encode_masked_batch(vocabulary, texts, 16))


def test_pads_to_the_longest_of_the_batch_and_never_beyond_the_limit(encode):
    assert encode(["cat", "the cat"])["input_mask"].shape[1] < 16
    inputs = encode(["the cat " * 99, "the"])
    assert inputs["input_mask"].shape == (2, 16)
    assert inputs["input_mask"][0].all()
    assert inputs["input_mask"][1].sum() == 3


def test_empty_batch(encode):
    assert encode([])["input_word_ids"].shape[0] == 0


def test_mask_becomes_its_id_and_a_glued_full_stop_starts_no_word(encode, vocabulary):
    ids = encode(["the [MASK]."], masks=True)["input_word_ids"][0].tolist()
    assert vocabulary.ids_to_pieces(ids) == ["[CLS]", "▁the", "[MASK]", ".", "[SEP]"]


def test_mask_is_ordinary_text_where_masks_are_not_read(encode, vocabulary):
    assert vocabulary.mask_id not in encode(["the [MASK]."])["input_word_ids"]


def test_bytes_that_are_not_utf8_do_not_fail(encode):
    assert encode([b"caf\xe9 \xff", b"the cat"])["input_mask"].shape[0] == 2


def pop_one_by_one(lengths, room):
    """The plain way: the longest loses a token, the last of equals, until all fit."""
    kept = list(lengths)
    while sum(kept) > room:
        longest = max(kept)
        kept[len(kept) - 1 - kept[::-1].index(longest)] -= 1
    return kept


def test_several_segments_are_cut_as_by_popping_one_by_one():
    threes = [*itertools.product(range(5), repeat=3), (10, 4, 1), (0, 30, 7)]
    pairs = [*itertools.product(range(14), repeat=2)]
    for lengths, room in itertools.product((threes, pairs), (1, 4, 5, 8)):
        found = text_graph.fair_lengths(
            tf.constant(lengths, tf.int64), tf.fill([len(lengths)], tf.constant(room, tf.int64))
        )
        assert found.numpy().tolist() == [pop_one_by_one(row, room) for row in lengths]


def test_segments_are_packed_in_a_row():
    segments = [tf.ragged.constant(rows, tf.int32) for rows in (
        [[11, 12, 13], [14]], [[21], []], [[31, 32], [33]],
    )]  # fmt: skip
    packed = text_graph.pack_segments(segments, 9, 2, 3, 0)
    assert packed["input_word_ids"].numpy().tolist() == [
        [2, 11, 12, 3, 21, 3, 31, 32, 3], [2, 14, 3, 33, 3, 0, 0, 0, 0],
    ]  # fmt: skip
    assert packed["input_mask"].numpy().tolist() == [[1] * 9, [1] * 5 + [0] * 4]
    assert packed["input_type_ids"].numpy().tolist() == [
        [0] * 4 + [1] * 5,
        [0, 0, 0, 1, 1] + [0] * 4,
    ]
