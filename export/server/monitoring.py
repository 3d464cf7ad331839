"""The server's reports about itself: counts and latencies for Prometheus, and a line a request."""

from __future__ import annotations

import bisect
import collections
import json
import os
import sys
import threading
import time
from collections.abc import Container, Iterator

METRICS_PATH = "/monitoring/prometheus/metrics"  # TF Serving's.
_BOUNDS = [10 * 1.8**power for power in range(33)]  # Microseconds, TF Serving's buckets.
_NAME = ":tensorflow:serving:request"


class Monitor:
    """Counts of the requests of a server, under TF Serving's names.

    Args:
      models: the served names; a request for another one counts without a name, so that clients
        cannot make the counts grow.
      log_requests: whether each request is a line of JSON on stderr.
    """

    def __init__(self, models: Container[str], log_requests: bool = False) -> None:
        self._models, self._log_requests = models, log_requests
        self._lock = threading.Lock()
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self._latencies: dict[tuple[str, str, str], list[int]] = {}
        self._sums: collections.Counter[tuple[str, str, str]] = collections.Counter()

    def record(self, entrypoint: str, api: str, model: str, status: str, seconds: float) -> None:
        """Counts a request that was answered.

        Args:
          entrypoint: "REST" or "GRPC".
          api: "predict", "classify", "regress", ...
          model: name in the request, whatever it is.
          status: name of a gRPC status code.
          seconds: time from the first line of its handler to the answer.
        """
        model = model if model in self._models else ""
        microseconds = seconds * 1e6
        with self._lock:
            self._counts[model, status] += 1
            key = model, api, entrypoint
            buckets = self._latencies.setdefault(key, [0] * (len(_BOUNDS) + 1))
            buckets[bisect.bisect_left(_BOUNDS, microseconds)] += 1
            self._sums[key] += round(microseconds)
        if self._log_requests:
            line = {
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "entrypoint": entrypoint,
                "api": api,
                "model": model,
                "status": status,
                "milliseconds": round(seconds * 1e3, 3),
            }
            sys.stderr.write(json.dumps(line) + "\n")  # At once: lines of threads do not mix.
            sys.stderr.flush()

    def text(self) -> str:
        """The counts in Prometheus' text format."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"# TYPE {_NAME}_count counter"
        for (model, status), count in sorted(self._counts.items()):
            yield f'{_NAME}_count{{model_name="{model}",status="{status}"}} {count}'
        yield f"# TYPE {_NAME}_latency histogram"
        for key, buckets in sorted(self._latencies.items()):
            model, api, entrypoint = key
            labels = f'model_name="{model}",API="{api}",entrypoint="{entrypoint}"'
            total = 0
            for bound, count in zip([*(f"{bound:.6g}" for bound in _BOUNDS), "+Inf"], buckets):
                total += count
                yield f'{_NAME}_latency_bucket{{{labels},le="{bound}"}} {total}'
            yield f"{_NAME}_latency_sum{{{labels}}} {self._sums[key]}"
            yield f"{_NAME}_latency_count{{{labels}}} {total}"
        yield "# TYPE process_resident_memory_bytes gauge"
        yield f"process_resident_memory_bytes {resident_bytes()}"


def resident_bytes() -> int:
    """The memory of this process, in bytes; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
