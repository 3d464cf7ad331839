"""Loads SavedModels and compares their answers with the expected ones; runs in `FreshProcess`.

Reads a pickled request for each SavedModel from stdin, and writes one line of JSON with the
findings.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from export.probes import Probe, largest_difference
from export.warmup import check_warmup

Serve = Callable[..., Mapping[str, tf.Tensor]]  # A loaded signature.


def ask(signatures: Mapping[str, Serve], probe: Probe, tolerance: float) -> float:
    """Sends one probe to loaded signatures; returns the `largest_difference` of the answer."""
    inputs = {name: tf.constant(value) for name, value in probe.inputs.items()}
    answer = signatures[probe.signature](**inputs)
    return largest_difference(
        probe, {name: np.asarray(value) for name, value in answer.items()}, tolerance
    )


def describe_signature(
    function: tf.types.experimental.ConcreteFunction,
) -> dict[str, dict[str, str]]:
    """Inputs and outputs of a signature as "dtype[shape]" by name."""
    inputs = function.structured_input_signature[1]
    return {
        "inputs": {name: _describe_tensor(spec) for name, spec in sorted(inputs.items())},
        "outputs": {
            name: _describe_tensor(spec)
            for name, spec in sorted(function.structured_outputs.items())
        },
    }


def _describe_tensor(spec: tf.TensorSpec) -> str:
    shape = ", ".join("?" if size is None else str(size) for size in spec.shape)
    return f"{spec.dtype.name}[{shape}]"


def reply(directory: str, probes: Sequence[Probe], tolerance: float) -> dict[str, Any]:
    """Sends all probes and the warm-up requests to a SavedModel. Returns the findings, or an
    `error` that says what is wrong.

    Findings are `signatures`, the results of `describe_signature` by name; `max_difference`, the
    largest over all probes; and `warmup_requests`, the number of requests in the warm-up file.
    """
    try:
        signatures = tf.saved_model.load(directory).signatures
        differences = [ask(signatures, probe, tolerance) for probe in probes]
        return {
            "signatures": {name: describe_signature(each) for name, each in signatures.items()},
            "max_difference": max(differences, default=0.0),
            "warmup_requests": check_warmup(directory, signatures),
        }
    except Exception as error:  # After any error, the export must not be published.
        return {"error": str(error) or type(error).__name__}


def answer_lines() -> None:
    """Answers each request from stdin with one line, until stdin ends."""
    # Redirect output of libraries to stderr, so that stdout holds only the findings.
    findings = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import tensorflow_text  # noqa: F401  (registers the ops of text graphs)

    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        print(json.dumps(reply(*request)), file=findings, flush=True)
        gc.collect()  # Loaded graphs are reference cycles that keep the weights in memory.
