"""Documents to ids in a graph: the same arrays as from tokenized.py."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.pretraining import tokenized
from data_pipeline.pretraining.without_records.tokens import DocumentTokenizer
from data_pipeline.tokenizers.graph import normalize_graph, normalize_mostly_ascii
from data_pipeline.tokenizers.loading import load_tokenizer

WORDPIECE = Path(__file__).parents[3] / "goldens" / "wordpiece" / "vocab.txt"


@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece"])
def test_documents_have_the_ids_of_python(documents_text, tokenizer, kind):
    if kind == "wordpiece":
        tokenizer = load_tokenizer(str(WORDPIECE))
    texts = [
        *documents_text[:60],
        "",
        "\n \n",
        "Caf\u00e9 \u4e2d\u6587 2010,\n\n \u2003 End, 7,\r\n",
    ]
    found = DocumentTokenizer(tokenizer)(tf.constant(texts))
    expected = tokenized.tokenize([text.split("\n") for text in texts], tokenizer)
    assert expected.num_sentences > 300
    for name in ("ids", "sentences", "documents", "starts_word"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("join_quotes", [True, False])
@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.text(st.characters(max_codepoint=0x250)) | st.text("aB\t\r \x1c'`\0\x0b")))
def test_ascii_is_normalized_as_the_rest_is(lower, join_quotes, texts):
    texts = tf.constant(["", *texts])
    expected = normalize_graph(texts, lower, join_quotes)
    found = normalize_mostly_ascii(texts, lower, join_quotes)
    assert found.numpy().tolist() == expected.numpy().tolist()
