"""Monitoring of the server: counts and latencies for Prometheus, and a log line per request."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Container

import prometheus_client

METRICS_PATH = "/monitoring/prometheus/metrics"  # Path, names and buckets as in TF Serving.
_NAME = ":tensorflow:serving:request"
_BUCKETS = [10 * 1.8**power for power in range(33)]  # Microseconds.

prometheus_client.disable_created_metrics()  # TF Serving does not report creation times.


class Monitor:
    """Counts requests for each of `models`, the served names; all others are counted under "".

    With `log_requests`, each request writes a line of JSON to stderr.
    """

    def __init__(self, models: Container[str], log_requests: bool = False) -> None:
        self._models, self._log_requests = models, log_requests
        # Its own registry, since the package's global one allows each name once per process.
        self._registry = prometheus_client.CollectorRegistry()
        self._counts = prometheus_client.Counter(
            f"{_NAME}_count", "Requests.", ["model_name", "status"], registry=self._registry
        )
        self._latencies = prometheus_client.Histogram(
            f"{_NAME}_latency",
            "Microseconds from the start of a request to its answer.",
            ["model_name", "API", "entrypoint"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        prometheus_client.ProcessCollector(registry=self._registry)

    def record(self, entrypoint: str, api: str, model: str, status: str, seconds: float) -> None:
        """Counts an answered request.

        Args:
          entrypoint: "REST" or "GRPC".
          api: "predict", "classify", "regress", ...
          status: name of a gRPC status code.
        """
        # Each name that a client invents would create another time series, which is kept forever.
        model = model if model in self._models else ""
        self._counts.labels(model, status).inc()
        self._latencies.labels(model, api, entrypoint).observe(seconds * 1e6)
        if self._log_requests:
            line = {
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "entrypoint": entrypoint,
                "api": api,
                "model": model,
                "status": status,
                "milliseconds": round(seconds * 1e3, 3),
            }
            sys.stderr.write(json.dumps(line) + "\n")  # One call, so that threads do not mix lines.
            sys.stderr.flush()

    def text(self) -> str:
        """The counts in Prometheus' text format."""
        text = prometheus_client.generate_latest(self._registry).decode()
        # The package adds _total to the names of counters, unlike TF Serving.
        return text.replace(f"{_NAME}_count_total", f"{_NAME}_count")
