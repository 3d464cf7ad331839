"""Pieces that look out of place, with their places in the text."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from export.encoding import encode_batch
from export.signatures.replaced_tokens import piece_spans

TEXTS = ["Café, ﬁne at 10,000 rivers", "", "the cat " * 40]


def test_pieces_and_probabilities_equal_keras(exports, answers):
    answer = answers("replaced_tokens", text=TEXTS)
    inputs = encode_batch(exports.vocabulary, TEXTS, 48)
    logits = exports.models["detector"](inputs, training=False)["replaced_logits"]
    expected = tf.sigmoid(logits).numpy()
    assert answer["num_pieces"].tolist() == (inputs["input_mask"].sum(axis=1) - 2).tolist()
    for row in range(len(TEXTS)):
        count = answer["num_pieces"][row]
        ids = inputs["input_word_ids"][row, 1 : count + 1]
        pieces = [piece.decode() for piece in answer["pieces"][row, :count]]
        assert pieces == exports.vocabulary.ids_to_pieces(ids)
        np.testing.assert_allclose(
            answer["probabilities"][row, :count], expected[row, 1 : count + 1], atol=1e-5
        )


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_pieces_stand_where_python_finds_them(exports, answers, text):
    found = answers("replaced_tokens", text=[text])
    answer = {name: value[0].tolist() for name, value in found.items()}
    spans = piece_spans(exports.vocabulary, text)[:46]  # As many as fit beside [CLS] and [SEP].
    assert list(zip(answer["starts"], answer["ends"])) == spans
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    in_bytes = [tuple(len(text[:place].encode()) for place in span) for span in spans]
    assert list(zip(answer["byte_starts"], answer["byte_ends"])) == in_bytes
