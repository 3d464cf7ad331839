"""Places of pieces in a graph equal those of `alignment.align`, whatever the text."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data_pipeline.finetuning.alignment import align
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from tests.data_pipeline.conftest import rows

TEXTS = (
    "The oﬃce sells ﬁgs and Crème brûlée.",
    " Two  spaces\tand\na line, a\xa0hard space\u2003and \t both. ",
    "Cafe\u0301s in İstanbul… ½ of ΟΔΟΣ, 10,000, or 1,950, or 20,5; in 1950, 7,",
    "E\ufeff / \ufeff47 or —\u200b\u200bmany leads",
    "``Quoted'' and ''so`` on, '''three'''''",
    "中文和日本語、한국어 👩‍👩‍👧 emoji 🏳️‍🌈 Ⅷ",
    "",
    " \t\n",
    "\u0301",
)
CHARACTERS = st.sampled_from(
    "abe AZ019,.ﬁ…½éÉ\u0301\u0345İΣßᾳ\xa0\u2003\t\n한국中`'\ufeff\u200b\0👧\u200d"
)


def traced(python_face):
    """texts -> ids, starts and ends of each, by one graph."""
    graph = graph_tokenizer(python_face)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def run(text):
        return tuple(align_graph(graph, Characters(text)))

    return lambda texts: [part.to_list() for part in run(tf.constant(texts, tf.string))]


@pytest.fixture(scope="module", params=rows(["some", "others"], "some"))
def faces(request, vocab_file, wordpiece):
    """Tokenizers in Python, each with its graph."""
    if request.param == "some":
        python_faces = [SentencePieceTokenizer(vocab_file), wordpiece]
    else:
        rules = [SentencePieceTokenizer(vocab_file, rules=r) for r in ("huggingface", "plain")]
        python_faces = [*rules, SentencePieceTokenizer(vocab_file, lower=False)]
    return [(face, traced(face)) for face in python_faces]


def check(faces, texts):
    for face, graph in faces:
        for text, ids, starts, ends in zip(texts, *graph(texts)):
            expected = align(face, text)
            found = np.array([ids, starts, ends]).reshape(3, -1)
            np.testing.assert_array_equal(found, np.stack(expected), err_msg=repr(text))


def test_texts_of_one_batch(faces):
    check(faces, TEXTS)
    check(faces, TEXTS[-1:])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(CHARACTERS, max_size=30), min_size=1, max_size=4))
@example(["\u03019,", "0\u03019,"])
def test_hard_characters(faces, texts):
    check(faces, texts)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text(faces, text):
    check(faces, [text])


def test_a_long_piece_with_many_characters_that_are_dropped(faces):
    """Unknown characters are one piece: each is looked for in it, and it is 20,000 long."""
    (face, graph), text = faces[0], "\u4e01\x01" * 20_000
    ((ids,), (starts,), (ends,)) = graph([text])
    np.testing.assert_array_equal(np.array([ids, starts, ends]), np.stack(align(face, text)))
