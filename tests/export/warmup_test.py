"""TF Serving's warm-up file."""

import os

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from export import warmup
from export.probes import TEXTS, Probe, serialized_examples, text_array


def read(path):
    records = tf.data.TFRecordDataset(os.path.join(path, warmup.WARMUP_FILE)).as_numpy_iterator()
    return [prediction_log_pb2.PredictionLog.FromString(record) for record in records]


def test_an_export_carries_one_request_for_each_signature_but_tokens(exports):
    logs = read(exports.paths["classifier"])
    assert [log.WhichOneof("log_type") for log in logs] == [
        "predict_log", "predict_log", "classify_log",
    ]  # fmt: skip
    requests = [log.predict_log.request for log in logs[:2]] + [logs[2].classify_log.request]
    assert [request.model_spec.signature_name for request in requests] == [
        "serving_default",
        "text_pair",
        "classify",
    ]
    assert {request.model_spec.name for request in requests} == {"classifier"}
    assert set(requests[1].inputs) == {"text_a", "text_b"}
    assert tf.make_ndarray(requests[0].inputs["text"]).shape == (1,)
    [example] = requests[2].input.example_list.examples
    assert example.features.feature["text"].bytes_list.value[0] == TEXTS[0].encode()
    *_, last = read(exports.paths["regression"])
    assert last.regress_log.request.model_spec.signature_name == "regress"
    assert list(last.regress_log.request.input.example_list.examples) == [example]


def test_a_request_that_fails_is_noticed(tmp_path):
    warmup.write_warmup(
        str(tmp_path), "m", [Probe("serving_default", {"text": text_array(["a"])}, {})]
    )

    def signature(text):
        return {"x": tf.constant([np.nan])}

    with pytest.raises(ValueError, match="not finite"):
        warmup.check_warmup(str(tmp_path), {"serving_default": signature})
    with pytest.raises(KeyError):
        warmup.check_warmup(str(tmp_path), {"other": signature})


@pytest.mark.parametrize(("signature", "output"), [("classify", "classes"), ("regress", "outputs")])
def test_examples_are_run_too(tmp_path, signature, output):
    asked = []

    def serve(inputs):
        asked.append(inputs.numpy().tolist())
        return {output: tf.constant([np.inf])}

    examples = serialized_examples(["é", "b"])
    probe = Probe(signature, {"inputs": examples}, {output: np.zeros(2)})
    warmup.write_warmup(str(tmp_path), "m", [probe])
    with pytest.raises(ValueError, match=f"request 0: output '{output}' is not finite"):
        warmup.check_warmup(str(tmp_path), {signature: serve})
    assert asked == [[examples[0]]]
