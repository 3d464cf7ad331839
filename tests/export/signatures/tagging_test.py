"""Tags of words with their places, as fine-tuning predicts them."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.finetuning.tagging import TaggedExample
from data_pipeline.finetuning.tagging_features import encode_tagged

TAGS = ("O", "B-LOC", "I-LOC")
TEXTS = (
    "Anna\u2003sleeps at a café\tin Paris 👩‍👩‍👧",
    "",
    " \u0301 x ",
    "the cat runs " * 30,
    "中文 ok",
)


def test_labels_equal_those_of_finetuning(exports, answers):
    answer = answers("tagging", text=TEXTS)
    examples = [
        TaggedExample(str(row), tuple(text.split()), None, "here", 1)
        for row, text in enumerate(TEXTS)
    ]
    encoded = encode_tagged(examples, exports.vocabulary, 48, TAGS, False)
    inputs = encoded.inputs(np.arange(len(TEXTS)), 48)
    found = tf.nn.softmax(exports.models["tagger"](inputs, training=False)).numpy()
    for row, text in enumerate(TEXTS):
        count = answer["num_words"][row]
        assert [word.decode() for word in answer["words"][row, :count]] == text.split()
        places = encoded.places[encoded.rows == row]
        highest = found[row, places].max(axis=1)
        np.testing.assert_allclose(answer["probabilities"][row, : len(places)], highest, atol=1e-5)
        labels = [TAGS[number].encode() for number in found[row, places].argmax(axis=1)]
        labels += [b"O"] * (count - len(places))
        assert answer["labels"][row, :count].tolist() == labels
        assert not answer["probabilities"][row, len(places) :].any()
    assert answer["num_words"].tolist() == [len(text.split()) for text in TEXTS]


def test_words_of_ones_own(answers):
    by_text = answers("tagging", text=["the cat in Paris", "river"])
    words = [["the", "cat", "in", "Paris", ""], ["river", "", "", "", ""]]
    by_words = answers("tagging", "words", words=words)
    for name in ("labels", "probabilities"):
        assert by_words[name].shape == (2, 5)
        np.testing.assert_array_equal(by_words[name][:, :4], by_text[name])


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_words_stand_where_the_offsets_say(answers, text):
    found = {name: value[0].tolist() for name, value in answers("tagging", text=[text]).items()}
    assert [word.decode() for word in found["words"]] == text.split()
    for number, word in enumerate(text.split()):
        assert text[found["starts"][number] : found["ends"][number]] == word
        places = slice(found["byte_starts"][number], found["byte_ends"][number])
        assert text.encode()[places].decode() == word
