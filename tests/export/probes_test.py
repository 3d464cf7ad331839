"""The comparison that an export has to pass."""

import numpy as np
import pytest
import tensorflow as tf

from export import probes
from export.probes import Probe, largest_difference

PROBE = Probe("s", {}, {"x": np.array([1.0, 100.0], np.float32), "n": np.array([1, 2])})


def answer(x, n=(1, 2)):
    return {"x": np.array(x, np.float32), "n": np.array(n)}


def test_reports_the_largest_difference():
    assert largest_difference(PROBE, answer([1.0, 100.0]), 1e-5) == 0
    assert largest_difference(PROBE, answer([1.0, 100.0005]), 1e-5) == pytest.approx(5e-4, rel=0.1)


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


def test_texts_as_signatures_take_them():
    assert probes.text_array(["é", ""]).tolist() == ["é".encode(), b""]
    assert probes.text_array(["é"]).dtype == object
    example = probes.example_of({"text": "é", "text_b": "b"})
    found = {name: f.bytes_list.value for name, f in example.features.feature.items()}
    assert found == {"text": ["é".encode()], "text_b": [b"b"]}
    [serialized] = probes.serialized_examples(["é"])
    parsed = tf.train.Example.FromString(serialized)
    assert parsed == probes.example_of({"text": "é"})


def counting(inputs, training):
    """A stand-in for a classifier: its logits are numbers of tokens and of second segments."""
    assert training is False
    columns = [tf.reduce_sum(inputs[name], axis=1) for name in ("input_mask", "input_type_ids")]
    return tf.cast(tf.stack(columns, axis=1), tf.float32)


def test_probes_of_a_classifier(vocabulary):
    single, pair, tokens, classify = probes.classifier_probes(counting, vocabulary, "ab", 48)
    assert [probe.signature for probe in (single, pair, tokens, classify)] == [
        "serving_default", "text_pair", "tokens", "classify",
    ]  # fmt: skip
    lengths = single.expected["logits"][:, 0]
    assert lengths[2] == 2 and lengths[5] == 48 and not single.expected["logits"][:, 1].any()
    np.testing.assert_allclose(single.expected["probabilities"].sum(axis=1), 1, rtol=1e-5)
    assert tokens.inputs["input_word_ids"].shape == (6, 48)
    assert tokens.expected is single.expected
    assert pair.expected["logits"][1].tolist() == [lengths[1], 0], "an empty second text"
    assert pair.expected["logits"][0, 1] > 0 and len(pair.inputs["text_b"]) == 6
    assert classify.expected["classes"].tolist() == [[b"a", b"b"]] * 6
    assert classify.expected["scores"] is single.expected["probabilities"]
    assert len(classify.inputs["inputs"]) == 6


def test_probes_of_a_masked_lm(vocabulary):
    def model(inputs, training):
        positions = tf.cast(inputs["masked_lm_positions"], tf.float32)
        logits = positions[..., None] * [0.0, 0.1, 0.3, 0.2]
        return {"masked_lm_logits": logits, "sentence_order_logits": tf.zeros([4, 2])}

    texts, tokens = probes.masked_lm_probes(model, vocabulary, 48, top_k=3)
    assert texts.expected["num_masks"].tolist() == [2, 0, 1, 2], "one is beyond the length"
    positions = texts.expected["positions"]
    assert positions[2].tolist() == [1, -1] and positions[3].tolist() == [1, 2]
    assert (tokens.inputs["masked_lm_positions"] >= 0).all()
    best = texts.expected["top_probabilities"]
    assert best.shape == (4, 2, 3) and not best[1].any() and not best[2, 1].any()
    expected = np.exp([0.3, 0.2, 0.1]) / np.exp([0.0, 0.1, 0.3, 0.2]).sum()
    np.testing.assert_allclose(best[2, 0], expected, rtol=1e-5)
    assert tokens.expected["masked_lm_logits"].shape == (4, 2, 4)


def test_probes_of_encoder_and_preprocessor(vocabulary):
    def encoder(inputs, training):
        wide = tf.cast(inputs["input_word_ids"], tf.float32)
        return {"sequence_output": wide, "pooled_output": wide[:, 0], "more": wide}

    found = probes.encoder_probes(encoder, vocabulary, 48)
    assert [probe.signature for probe in found] == ["serving_default", "tokens"]
    assert set(found[0].expected) == {"sequence_output", "pooled_output"}
    [preprocessor] = probes.preprocessor_probes(vocabulary, 200)
    for name, values in preprocessor.expected.items():
        assert values.shape == (6, 200)
        lengths = preprocessor.expected["input_mask"].sum(axis=1)
        filler = vocabulary.pad_id if name == "input_word_ids" else 0
        assert (values[2, lengths[2] :] == filler).all()
    assert lengths[2] == 2 and lengths[5] > 100
