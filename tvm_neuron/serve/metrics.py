"""Metrics: what a server counts, in the form that Prometheus reads."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_LABELS = ("model", "version")
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """All of a server; the modelled device time is that of the programs' clock, host time what it took here."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "neuron_requests", "Answered requests, by protocol and status", (*_LABELS, "protocol", "status"),
            registry=self._registry,
        )  # fmt: skip
        self.failures = Counter(
            "neuron_failures", "Requests that failed by a defect of ours", _LABELS, registry=self._registry
        )
        self.held = Gauge("neuron_requests_held", "Requests that wait or run", _LABELS, registry=self._registry)
        self.rows = Histogram(
            "neuron_batch_rows", "Rows of a call of the library", _LABELS, buckets=_ROWS, registry=self._registry
        )
        self.together = Histogram(
            "neuron_batch_requests", "Requests in a call of the library", _LABELS, buckets=_ROWS,
            registry=self._registry,
        )  # fmt: skip
        self.device = Counter(
            "neuron_device_seconds", "Modelled time on the NeuronCores", _LABELS, registry=self._registry
        )
        self.host = Histogram(
            "neuron_request_seconds", "Time from a request to its answer here", _LABELS, registry=self._registry
        )
        self.loaded = Gauge("neuron_model_loaded", "Whether a version is loaded", _LABELS, registry=self._registry)

    def text(self) -> bytes:
        """What GET /metrics gives."""
        return generate_latest(self._registry)
