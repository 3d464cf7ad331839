"""Characters of texts in a graph: their bytes, white space and words."""

import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.tokenizers.graph_characters import Characters


def test_characters_know_their_bytes():
    found = Characters(tf.constant(["a\u00e9 中", "", "\U0001f467b"]))
    assert found.byte_starts.numpy().tolist() == [0, 1, 3, 4, 0, 4]
    assert found.places.numpy().tolist() == [0, 1, 2, 3, 0, 1]
    assert found.is_space.numpy().tolist() == [False, False, True, False, False, False]
    assert found.lengths.numpy().tolist() == [4, 0, 2]


def test_white_space_around_spans_goes_away():
    """The second text ends with it, and the third span is of nothing else."""
    found = Characters(tf.constant(["a b  c", " \tx "]))
    starts, ends = found.trimmed(
        tf.constant([0, 1, 0]), tf.constant([1, 0, 3]), tf.constant([4, 3, 4])
    )
    assert starts.numpy().tolist() == [2, 2, 5] and ends.numpy().tolist() == [3, 3, 5]
    in_bytes = found.bytes_at(tf.constant([0, 1]), tf.constant([6, 4]))
    assert in_bytes.numpy().tolist() == [6, 4]


def test_places_behind_marks():
    """In the middle, two at once, and at the end of a text; the next text begins with one."""
    found = Characters(tf.constant(["ae\u0301\u20ddb\u0337", "\u0301a", ""]))
    rows, places = [0, 0, 0, 0, 0, 1, 1, 2], [0, 1, 2, 4, 5, 0, 1, 0]
    moved = found.after_marks(tf.constant(rows), tf.constant(places)).numpy().tolist()
    assert moved == [0, 1, 4, 4, 6, 1, 1, 0]


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_words_are_those_of_python(text):
    found = Characters(tf.constant([text])).words()
    assert [word.decode() for word in found.texts.numpy()[0]] == text.split()
    spans = zip(found.starts.numpy()[0], found.ends.numpy()[0])
    assert [text[start:end] for start, end in spans] == text.split()
