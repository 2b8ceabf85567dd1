"""The Prometheus metrics of the server."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


class Metrics:
    """Requests, their latency, steps of the model and the queue. Labels are routes and statuses only, so they are few.

    Args:
        queue_length: returns the requests that wait for a step.
        num_under_way: returns the requests in progress.
    """

    def __init__(self, *, queue_length: Callable[[], int], num_under_way: Callable[[], int]):
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter("text_service_requests", "Requests.", ["route", "status"], registry=self.registry)
        self._seconds = Histogram(
            "text_service_request_seconds", "Time to the answer.", ["route"], buckets=SECONDS, registry=self.registry
        )
        self._rows = Histogram("text_service_step_rows", "Rows of a step.", buckets=ROWS, registry=self.registry)
        self._tokens = Histogram(
            "text_service_step_tokens", "Tokens of a step, estimated.", buckets=TOKENS, registry=self.registry
        )
        queue = Gauge("text_service_queue_requests", "Requests that wait for a step.", registry=self.registry)
        queue.set_function(queue_length)
        under_way = Gauge("text_service_requests_in_progress", "Requests in progress.", registry=self.registry)
        under_way.set_function(num_under_way)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Counts an answered request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def step(self, rows: int, tokens: int) -> None:
        """Counts a step of the model."""
        self._rows.observe(rows)
        self._tokens.observe(tokens)
