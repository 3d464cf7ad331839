"""TF Serving's warm-up file: requests that a server runs before it reports a version as ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from data_pipeline.errors import needs_extra
from export.probes import Probe

# Signatures for Classify and Regress have this single input, of serialized tf.Examples.
EXAMPLES_INPUT = "inputs"
WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")


def write_warmup(directory: str, model_name: str, probes: Iterable[Probe]) -> None:
    """Writes the warm-up file into the folder of a SavedModel: a request with one row for each
    probe with only text or tf.Examples. Servers ignore the model name in it.
    """
    records = [_record(model_name, probe) for probe in probes if _is_text(probe)]
    if records:
        path = os.path.join(directory, WARMUP_FILE)
        tf.io.gfile.makedirs(os.path.dirname(path))
        with tf.io.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)


def _is_text(probe: Probe) -> bool:
    """Whether the inputs are texts, or serialized tf.Examples."""
    # No token ids: TF Serving's batching may pad a tensor with its first element, a mask with 1.
    return all(value.dtype == object for value in probe.inputs.values())


def _method(probe: Probe) -> str:
    """The TF Serving method that a probe calls, by its name in PredictionLog."""
    if set(probe.inputs) != {EXAMPLES_INPUT}:
        return "predict_log"
    return "classify_log" if "classes" in probe.expected else "regress_log"


def _log_class() -> Any:
    """TF Serving's message PredictionLog."""
    with needs_extra("serving", "The warm-up file of an export that takes text"):
        from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog
    return PredictionLog


def _record(model_name: str, probe: Probe) -> bytes:
    log, method = _log_class()(), _method(probe)
    request = getattr(log, method).request
    request.model_spec.name = model_name
    request.model_spec.signature_name = probe.signature
    if method == "predict_log":
        for name, value in probe.inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value[:1], dtype=tf.string))
    else:
        example = request.input.example_list.examples.add()
        example.ParseFromString(probe.inputs[EXAMPLES_INPUT][0])
    return log.SerializeToString()


def check_warmup(
    directory: str, signatures: Mapping[str, Callable[..., Mapping[str, tf.Tensor]]]
) -> int:
    """Runs every request of the warm-up file through loaded signatures, and returns their number;
    raises ValueError if an answer is not finite.
    """
    # A bad record would prevent TF Serving from loading the model.
    path = os.path.join(directory, WARMUP_FILE)
    if not tf.io.gfile.exists(path):
        return 0
    log_class, count = _log_class(), 0
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        log = log_class.FromString(record)
        method = log.WhichOneof("log_type")
        request = getattr(log, method).request
        if method == "predict_log":
            arrays = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        else:
            examples = request.input.example_list.examples
            arrays = {EXAMPLES_INPUT: [example.SerializeToString() for example in examples]}
        inputs = {name: tf.constant(value) for name, value in arrays.items()}
        answer = signatures[request.model_spec.signature_name](**inputs)
        for name, value in answer.items():
            if value.dtype.is_floating and not np.all(np.isfinite(value)):
                raise ValueError(f"warm-up request {count}: output {name!r} is not finite")
        count += 1
    return count
