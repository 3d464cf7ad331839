"""The comparison that an export has to pass."""

import numpy as np
import pytest
import tensorflow as tf

from export import probes
from export.probes import Expected, Probe, largest_difference, probes_of

PROBE = Probe("s", {}, {"x": np.array([1.0, 100.0], np.float32), "n": np.array([1, 2])})


def answer(x, n=(1, 2)):
    return {"x": np.array(x, np.float32), "n": np.array(n)}


@pytest.mark.parametrize(
    "wrong",
    [answer([1.0, 100.1]), answer([1.0, np.nan]), answer([1.0]), answer([1.0, 100.0], (1, 3))],
)
def test_refuses_what_differs(wrong):
    with pytest.raises(ValueError, match="signature 's', output"):
        largest_difference(PROBE, wrong, 1e-5)


def test_the_tolerance_belongs_to_what_is_allowed():
    """It grows with the largest number expected, where that is above 1."""
    small = Probe("s", {}, {"x": np.array([0.0, 0.5])})
    assert largest_difference(small, {"x": [0.25, 0.5]}, 0.25) == 0.25
    large = Probe("s", {}, {"x": np.array([0.0, -4.0])})
    assert largest_difference(large, {"x": [1.0, -4.0]}, 0.25) == 1.0
    for probe, wrong in ((small, [0.3, 0.5]), (large, [1.1, -4.0])):
        with pytest.raises(ValueError, match=r"output 'x': differs by \d.*, more than \d"):
            largest_difference(probe, {"x": wrong}, 0.25)
    nothing = Probe("s", {}, {"x": np.zeros([0, 3]), "label": np.array([b"a"], object)})
    answer = {"x": np.zeros([0, 3]), "label": np.array([b"a"], object)}
    assert largest_difference(nothing, answer, 0.25) == 0


def test_the_largest_of_several_outputs_is_told():
    probe = Probe("s", {}, {"x": np.zeros(2), "y": np.zeros(2), "z": np.zeros(2)})
    answer = {"x": [0.1, 0], "y": [0, -0.2], "z": [0, 0]}
    assert largest_difference(probe, answer, 1.0) == 0.2


def test_places_in_characters_and_in_bytes():
    found = probes.places(["Ça va", "", "中"], [[(0, 2), (3, 5)], [], [(0, 1)]], 3)
    assert {name: value.tolist() for name, value in found.items()} == {
        "starts": [[0, 3, -1], [-1] * 3, [0, -1, -1]],
        "ends": [[2, 5, -1], [-1] * 3, [1, -1, -1]],
        "byte_starts": [[0, 4, -1], [-1] * 3, [0, -1, -1]],
        "byte_ends": [[3, 6, -1], [-1] * 3, [3, -1, -1]],
    }
    assert found["starts"].dtype == np.int32


def test_texts_as_signatures_take_them():
    assert probes.text_array(["é", ""]).tolist() == ["é".encode(), b""]
    assert probes.text_array(["é"]).dtype == object
    example = probes.example_of({"text": "é", "text_b": "b"})
    found = {name: f.bytes_list.value for name, f in example.features.feature.items()}
    assert found == {"text": ["é".encode()], "text_b": [b"b"]}
    [serialized] = probes.serialized_examples(["é"])
    parsed = tf.train.Example.FromString(serialized)
    assert parsed == probes.example_of({"text": "é"})


def test_a_probe_asks_each_signature_for_its_own_inputs():
    def signature(name, dtype):
        return tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], dtype, name)])

    signatures = {"words": signature("text", tf.string), "sums": signature("n", tf.int32)}
    answers = {"sums": {"y": np.array([3])}, "words": {"z": np.array([b"a"])}}
    words, sums = probes_of(signatures, Expected(answers, {"n": np.array([1, 2])}))
    assert (words.signature, sums.signature) == ("words", "sums")
    assert list(words.inputs) == ["text"] and words.inputs["text"][3].startswith(b"In 2010")
    assert list(sums.inputs) == ["n"] and sums.expected is answers["sums"]
    texts = np.array([b"mine"])
    [words, _] = probes_of(signatures, Expected(answers, {"n": texts, "text": texts}))
    assert words.inputs["text"] is texts, "a task may ask other texts"
    with pytest.raises(KeyError, match="sums"):
        probes_of(signatures, Expected({"words": {}}, {"n": texts}))
