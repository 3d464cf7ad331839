"""Counts under TF Serving's names, in Prometheus' format, and the log of requests."""

import json
import re

from export.server.monitoring import Monitor

LINE = re.compile(r'^:?[a-z_:]+(\{[A-Za-z_]+="[^"]*"(,[A-Za-z_]+="[^"]*")*\})? [0-9.e+]+$')


def test_counts_and_latencies():
    monitor = Monitor(["m"])
    monitor.record("REST", "predict", "m", "OK", 0.000_017)
    monitor.record("REST", "predict", "m", "OK", 3.0)
    monitor.record("GRPC", "predict", "m", "NOT_FOUND", 1e9)
    lines = monitor.text().splitlines()
    assert all(LINE.match(line) for line in lines if not line.startswith("#"))
    name = ":tensorflow:serving:request"
    assert f"# TYPE {name}_count counter" in lines and f"# TYPE {name}_latency histogram" in lines
    assert f'{name}_count{{model_name="m",status="OK"}} 2.0' in lines
    assert f'{name}_count{{model_name="m",status="NOT_FOUND"}} 1.0' in lines
    labels = 'API="predict",entrypoint="REST",model_name="m"'
    for bound, count in (("10.0", 0), ("18.0", 1), ("+Inf", 2)):
        bucket = labels.replace(",model", f',le="{bound}",model')
        assert f"{name}_latency_bucket{{{bucket}}} {count}.0" in lines
    assert f"{name}_latency_sum{{{labels}}} 3.000017e+06" in lines
    assert f"{name}_latency_count{{{labels}}} 2.0" in lines


def test_names_that_clients_make_up_do_not_make_it_grow():
    monitor = Monitor(["m"])
    for number in range(1000):
        monitor.record("REST", "predict", f'"made up"\n{number}', "NOT_FOUND", 0.1)
    assert ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"} 1000.0' in (
        monitor.text()
    )
    assert len(monitor.text()) < 10_000


def test_the_log_has_a_line_of_json_for_each_request(capsys):
    Monitor(["m"], log_requests=True).record("GRPC", "classify", "m", "OK", 0.250_000_4)
    Monitor(["m"]).record("GRPC", "classify", "m", "OK", 0.25)
    (line,) = capsys.readouterr().err.splitlines()
    logged = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", logged.pop("time"))
    assert logged == {
        "entrypoint": "GRPC", "api": "classify", "model": "m", "status": "OK", "milliseconds": 250.0
    }  # fmt: skip


def test_resident_memory_is_in_bytes():
    (line,) = re.findall("^process_resident_memory_bytes (.*)$", Monitor([]).text(), re.M)
    assert float(line) > 50 << 20  # TensorFlow is loaded.
