"""Probes of an export: a request for each signature, with the expected answer from Keras.

An export is checked against them before it gets its final name; the text requests among them also
become TF Serving's warm-up file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

# Ordinary, accented, empty, digit before comma (ALBERT splits this piece again), capitals and
# quotes, and a text that exceeds every model's limit.
TEXTS = (
    "A function that returns the largest of two numbers.",
    "Café, naïve façade: Dvořák’s ﬁrst symphony",
    "",
    "In 2010, prices rose by 3.0, then fell by 1,000 (about 7%).",
    'THE QUICK "brown" fox\tjumps over the lazy dog',
    "one sentence of many words " * 120,
)
PAIRS = ("Give the maximum.", "", "only the second", "1,", "word " * 400, "short")
# Outputs that give positions in a text.
PLACES = ("starts", "ends", "byte_starts", "byte_ends")


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


class Expected(NamedTuple):
    """The requests to the signatures of a task, and the expected answers.

    Attributes:
      answers: by signature name, then output name.
      asked: arrays by input name, for all signatures; by default, `text` and `text_a` are TEXTS,
        `text_b` PAIRS, and `inputs` tf.Examples of TEXTS.
    """

    answers: Mapping[str, Mapping[str, np.ndarray]]
    asked: Mapping[str, np.ndarray] = {}


def probes_of(
    signatures: Mapping[str, tf.types.experimental.GenericFunction], expected: Expected
) -> list[Probe]:
    """A probe for each signature; its input specs select the arrays to send."""
    texts = text_array(TEXTS)
    further = {"text_b": text_array(PAIRS), "inputs": serialized_examples(TEXTS)}
    asked = {"text": texts, "text_a": texts, **further, **expected.asked}
    return [
        Probe(
            name,
            {spec.name: asked[spec.name] for spec in function.input_signature},
            expected.answers[name],
        )
        for name, function in signatures.items()
    ]


def text_array(texts: Sequence[str]) -> np.ndarray:
    """Texts as an array of UTF-8 bytes, as signatures take them."""
    return np.array([text.encode("utf-8") for text in texts], dtype=object)


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


def places(
    texts: Sequence[str], parts: Sequence[Sequence[tuple[int, int]]], width: int
) -> dict[str, np.ndarray]:
    """The positions of parts of texts, in the form of the outputs: int32 [texts, width] by the
    names of PLACES, padded with -1. No text may have more than `width` parts.

    A part is its first character and the one after its last: "Ça va", (3, 5) -> 3, 5, 4, 6.
    """
    found = np.full([len(PLACES), len(texts), width], -1, np.int32)
    for row, (text, spans) in enumerate(zip(texts, parts)):
        for column, span in enumerate(spans):
            found[:, row, column] = [*span, *(len(text[:place].encode()) for place in span)]
    return dict(zip(PLACES, found))


def largest_difference(probe: Probe, answer: Mapping[str, np.ndarray], tolerance: float) -> float:
    """The largest absolute difference between answer and expectation.

    Float outputs may differ by `tolerance`, multiplied by the largest expected absolute value if
    that is above 1.

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
        if not difference <= allowed:  # Not `>`: the difference may be NaN.
            raise ValueError(f"{where}: differs by {difference:.2e}, more than {allowed:.0e}")
        largest = max(largest, difference)
    return largest
