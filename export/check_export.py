"""Loads SavedModels and compares their answers with expected ones: what runs in `FreshProcess`.

It reads a line of JSON for each SavedModel from stdin, and writes a line with the findings.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from export.fresh_process import unpack_probes
from export.probes import Probe, largest_difference
from export.warmup import check_warmup

Serve = Callable[..., Mapping[str, tf.Tensor]]  # A loaded signature.


@dataclasses.dataclass(frozen=True)
class Checked:
    """The findings about a SavedModel whose answers are the expected ones.

    Attributes:
      signatures: for each signature its inputs and outputs as "dtype[shape]" by name.
      max_difference: largest absolute difference over all probes.
      warmup_requests: number of requests in the warm-up file.
    """

    signatures: dict[str, dict[str, dict[str, str]]]
    max_difference: float
    warmup_requests: int


def check(directory: str, probes: list[Probe], tolerance: float) -> Checked:
    """Loads a SavedModel, and sends it all probes and its warm-up requests.

    Raises:
      ValueError: an answer is not the expected one.
    """
    signatures = tf.saved_model.load(directory).signatures
    differences = [ask(signatures, probe, tolerance) for probe in probes]
    warmup_requests = check_warmup(directory, signatures)
    described = {name: describe_signature(function) for name, function in signatures.items()}
    return Checked(described, max(differences, default=0.0), warmup_requests)


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


def reply(line: str) -> dict[str, Any]:
    """The findings about the SavedModel that a line names: Checked, or an `error`."""
    request = json.loads(line)
    try:
        probes = unpack_probes(request["probes"])
        return dataclasses.asdict(check(request["directory"], probes, request["tolerance"]))
    except Exception as error:  # Whatever it is, the export is not to be published.
        return {"error": str(error) or type(error).__name__}


def answer_lines() -> None:
    """Answers stdin line by line until it ends."""
    # What libraries print is not in the way of the findings.
    findings = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import tensorflow_text  # noqa: F401  (registers the ops of text graphs)

    for line in sys.stdin:
        print(json.dumps(reply(line)), file=findings, flush=True)
        gc.collect()  # Loaded graphs are cycles, which hold the weights.
