"""Counts under TF Serving's names, in Prometheus' format, and the log of requests."""

import json
import re

from export.server.monitoring import Monitor, resident_bytes

LINE = re.compile(r'^:?[a-z_:]+(\{[A-Za-z_]+="[^"]*"(,[A-Za-z_]+="[^"]*")*\})? [0-9.e+]+$')


def test_counts_and_latencies():
    monitor = Monitor(["m"])
    monitor.record("REST", "predict", "m", "OK", 0.000_017)
    monitor.record("REST", "predict", "m", "OK", 3.0)
    monitor.record("GRPC", "predict", "m", "NOT_FOUND", 1e9)
    lines = monitor.text().splitlines()
    assert all(LINE.match(line) for line in lines if not line.startswith("# TYPE "))
    name = ":tensorflow:serving:request"
    assert f'{name}_count{{model_name="m",status="OK"}} 2' in lines
    assert f'{name}_count{{model_name="m",status="NOT_FOUND"}} 1' in lines
    labels = 'model_name="m",API="predict",entrypoint="REST"'
    assert f'{name}_latency_bucket{{{labels},le="10"}} 0' in lines
    assert f'{name}_latency_bucket{{{labels},le="18"}} 1' in lines
    assert f'{name}_latency_bucket{{{labels},le="+Inf"}} 2' in lines
    assert f"{name}_latency_sum{{{labels}}} 3000017" in lines
    assert f"{name}_latency_count{{{labels}}} 2" in lines


def test_names_that_clients_make_up_do_not_make_it_grow():
    monitor = Monitor(["m"])
    for number in range(1000):
        monitor.record("REST", "predict", f'"made up"\n{number}', "NOT_FOUND", 0.1)
    assert ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"} 1000' in (
        monitor.text()
    )
    assert len(monitor.text()) < 5000


def test_the_log_has_a_line_of_json_for_each_request(capsys):
    Monitor(["m"], log_requests=True).record("GRPC", "classify", "m", "OK", 0.25)
    Monitor(["m"]).record("GRPC", "classify", "m", "OK", 0.25)
    (line,) = capsys.readouterr().err.splitlines()
    logged = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", logged.pop("time"))
    assert logged == {
        "entrypoint": "GRPC", "api": "classify", "model": "m", "status": "OK", "milliseconds": 250
    }  # fmt: skip


def test_resident_memory_is_in_bytes():
    assert resident_bytes() > 50 << 20  # TensorFlow is loaded.
