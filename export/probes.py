"""Probes of an export: requests, with the answers of Keras and the Python tokenizer.

An export is checked against them before it gets its final name, and the text requests among them
become the warm-up file of TF Serving.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from export.encoding import encode_batch, encode_masked_batch
from export.signatures import DEFAULT_SIGNATURE, mask_positions

if TYPE_CHECKING:
    from albert_tf.encoder import AlbertEncoder
    from albert_tf.models import AlbertClassifier, AlbertPretrainer

# Ordinary, accented, empty, digit before comma, capitals and quotes, and one longer than any
# model's limit.
TEXTS = (
    "A function that returns the largest of two numbers.",
    "Café, naïve façade: Dvořák’s ﬁrst symphony",
    "",
    "In 2010, prices rose by 3.0, then fell by 1,000 (about 7%).",
    'THE QUICK "brown" fox\tjumps over the lazy dog',
    "one sentence of many words " * 120,
)
PAIRS = ("Give the maximum.", "", "only the second", "1,", "word " * 400, "short")
MASKED_TEXTS = (
    "A function that [MASK] the largest of two [MASK].",
    "no mask at all",
    "[MASK]",
    "[MASK][MASK] returns a " + "very long list " * 150 + "[MASK]",
)


@dataclasses.dataclass(frozen=True)
class Probe:
    """One request to one signature, with the expected answer.

    Attributes:
      signature: name of the signature.
      inputs: arrays by input name; string arrays hold bytes.
      expected: arrays by output name; numbers are compared with a tolerance, everything else
        exactly.
    """

    signature: str
    inputs: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]


def text_array(texts: Sequence[str]) -> np.ndarray:
    """Texts as an array of UTF-8 bytes, as signatures take them."""
    return np.array([text.encode("utf-8") for text in texts], dtype=object)


def classifier_probes(
    model: AlbertClassifier, vocabulary: Tokenizer, labels: Sequence[str], max_seq_length: int
) -> list[Probe]:
    """Probes of ClassifierModule's four signatures.

    Args:
      model: the model in Keras.
      vocabulary: the Python tokenizer.
      labels: C names, by class id.
      max_seq_length: longest sequence that a text becomes.

    Returns:
      One probe for each signature.
    """
    single = encode_batch(vocabulary, TEXTS, max_seq_length)
    expected = _classify(model, single)
    pair = encode_batch(vocabulary, TEXTS, max_seq_length, PAIRS)
    classes = np.tile(np.array([label.encode() for label in labels], dtype=object), [len(TEXTS), 1])
    as_classes = {"classes": classes, "scores": expected["probabilities"]}
    return [
        Probe(DEFAULT_SIGNATURE, {"text": text_array(TEXTS)}, expected),
        Probe(
            "text_pair",
            {"text_a": text_array(TEXTS), "text_b": text_array(PAIRS)},
            _classify(model, pair),
        ),
        Probe("tokens", single, expected),
        Probe("classify", {"inputs": serialized_examples(TEXTS)}, as_classes),
    ]


def _classify(model: AlbertClassifier, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    logits = model(_tensors(inputs), training=False)
    return {"logits": logits.numpy(), "probabilities": tf.nn.softmax(logits).numpy()}


def serialized_examples(texts: Sequence[str]) -> np.ndarray:
    """Serialized tf.Examples with the feature `text`, one for each text, as an array of bytes."""
    examples = [example_of({"text": text}).SerializeToString() for text in texts]
    return np.array(examples, dtype=object)


def example_of(features: Mapping[str, str]) -> tf.train.Example:
    """A tf.Example of string features."""
    example = tf.train.Example()
    for name, value in features.items():
        example.features.feature[name].bytes_list.value.append(value.encode("utf-8"))
    return example


def masked_lm_probes(
    model: AlbertPretrainer, vocabulary: Tokenizer, max_seq_length: int, top_k: int
) -> list[Probe]:
    """Probes of MaskedLMModule's two signatures.

    Args:
      model: the model in Keras.
      vocabulary: the Python tokenizer.
      max_seq_length: longest sequence that a text becomes.
      top_k: K, number of pieces for each mask.

    Returns:
      One probe for each signature.
    """
    inputs = encode_masked_batch(vocabulary, MASKED_TEXTS, max_seq_length)
    positions = mask_positions(tf.constant(inputs["input_word_ids"]), vocabulary.mask_id).numpy()
    inputs["masked_lm_positions"] = np.maximum(positions, 0)
    outputs = model(_tensors(inputs), training=False)
    logits = outputs["masked_lm_logits"].numpy()
    best = np.sort(tf.nn.softmax(logits).numpy(), axis=-1)[..., ::-1][..., :top_k]  # [B, M, K]
    text_answer = {
        "top_probabilities": np.where(positions[..., None] >= 0, best, 0.0),
        "positions": positions,
        "num_masks": (positions >= 0).sum(axis=1),
    }
    tokens_answer = {
        "masked_lm_logits": logits,
        "sentence_order_logits": outputs["sentence_order_logits"].numpy(),
    }
    return [
        Probe(DEFAULT_SIGNATURE, {"text": text_array(MASKED_TEXTS)}, text_answer),
        Probe("tokens", inputs, tokens_answer),
    ]


def encoder_probes(
    encoder: AlbertEncoder, vocabulary: Tokenizer, max_seq_length: int
) -> list[Probe]:
    """Probes of EncoderModule's signatures."""
    inputs = encode_batch(vocabulary, TEXTS, max_seq_length, PAIRS)
    outputs = encoder(_tensors(inputs), training=False)
    expected = {name: outputs[name].numpy() for name in ("sequence_output", "pooled_output")}
    return [Probe(name, inputs, expected) for name in (DEFAULT_SIGNATURE, "tokens")]


def preprocessor_probes(vocabulary: Tokenizer, max_seq_length: int) -> list[Probe]:
    """Probes of PreprocessorModule's signature: the Python tokenizer's ids, fully padded."""
    inputs = encode_batch(vocabulary, TEXTS, max_seq_length)
    missing = max_seq_length - inputs["input_mask"].shape[1]
    fillers = {"input_word_ids": vocabulary.pad_id, "input_mask": 0, "input_type_ids": 0}
    expected = {
        name: np.pad(inputs[name], [(0, 0), (0, missing)], constant_values=filler)
        for name, filler in fillers.items()
    }
    return [Probe(DEFAULT_SIGNATURE, {"text": text_array(TEXTS)}, expected)]


def _tensors(inputs: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.constant(value) for name, value in inputs.items()}


def largest_difference(probe: Probe, answer: Mapping[str, np.ndarray], tolerance: float) -> float:
    """The largest absolute difference between answer and expectation.

    Float outputs may differ by `tolerance`, or by that share of the largest expected number where
    it is above 1.

    Raises:
      ValueError: an output differs by more, or differs at all and is not float.
    """
    largest = 0.0
    for name, expected in probe.expected.items():
        got = np.asarray(answer[name])
        where = f"signature {probe.signature!r}, output {name!r}"
        if got.shape != expected.shape:
            raise ValueError(f"{where}: shape {got.shape} instead of {expected.shape}")
        if not np.issubdtype(expected.dtype, np.floating):
            if not np.array_equal(got, expected):
                raise ValueError(f"{where}: {got.tolist()} instead of {expected.tolist()}")
            continue
        difference = float(np.max(np.abs(got - expected), initial=0.0))
        allowed = tolerance * max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        if not difference <= allowed:
            raise ValueError(f"{where}: differs by {difference:.2e}, more than {allowed:.0e}")
        largest = max(largest, difference)
    return largest
