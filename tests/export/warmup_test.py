"""TF Serving's warm-up file."""

import os

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from export import warmup
from export.probes import Probe, text_array


def read(path):
    records = tf.data.TFRecordDataset(os.path.join(path, warmup.WARMUP_FILE)).as_numpy_iterator()
    return [prediction_log_pb2.PredictionLog.FromString(record) for record in records]


def test_an_export_carries_one_text_request_for_each_text_signature(exports):
    logs = read(exports.paths["classifier"])
    requests = [log.predict_log.request for log in logs]
    assert all(log.WhichOneof("log_type") == "predict_log" for log in logs)
    assert [request.model_spec.signature_name for request in requests] == [
        "serving_default",
        "text_pair",
    ]
    assert {request.model_spec.name for request in requests} == {"classifier"}
    assert set(requests[1].inputs) == {"text_a", "text_b"}
    assert tf.make_ndarray(requests[0].inputs["text"]).shape == (1,)


def test_an_encoder_has_none_because_token_requests_are_padded_wrongly(exports):
    assert not os.path.exists(os.path.join(exports.paths["encoder"], warmup.WARMUP_FILE))


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
