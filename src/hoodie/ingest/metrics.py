"""The state of flows as Prometheus text on a local port, by the library `prometheus-client`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hoodie.errors import InvalidConfigError
from hoodie.ingest.code import library
from hoodie.ingest.runner import FlowState

LOCAL: Final = "127.0.0.1"
_PORT_MAX: Final = 65_535

_GAUGES: Final[tuple[tuple[str, str, Callable[[FlowState], float | None]], ...]] = (
    ("lag_rows", "Rows of the source behind the last batch", lambda state: state.result.lag_rows),
    ("lag_seconds", "Age of the oldest row of the source behind the last batch", lambda s: s.result.lag_seconds),
    ("last_batch_seconds", "Seconds that the last committed batch took", lambda state: state.batch_seconds),
    (
        "last_success_timestamp_seconds",
        "When the last batch was committed, or the source had nothing new: seconds since the epoch",
        lambda state: state.last_success,
    ),
    ("flow_failing", "1 if the last batch failed", lambda state: float(state.failures > 0)),
    ("flow_done", "1 if the flow has ended", lambda state: float(state.is_done)),
)
_COUNTERS: Final[tuple[tuple[str, str, Callable[[FlowState], float]], ...]] = (
    (
        "rows_written",
        "Rows inserted, updated and deleted",
        lambda state: state.result.inserted + state.result.updated + state.result.deleted,
    ),
    ("bytes_written", "Bytes of data files written", lambda state: state.result.bytes_written),
    ("bad_rows", "Rows that could not be decoded", lambda state: state.result.bad_rows),
    ("batches", "Batches committed", lambda state: state.result.batches),
    ("failures", "Batches that failed", lambda state: state.failures_total),
)


@contextmanager
def metrics_served(states: Sequence[FlowState], port: int, host: str = LOCAL) -> Iterator[int]:
    """Serve `http://host:port/metrics` during the body, and return the port, which is a free one if `port` is 0.

    All names begin with `hoodie_ingest_`, and have the label `flow`; a value that is not known is left out. Each
    request reads the states; no batch waits for it.

    Raises: UnsupportedError if prometheus-client is not installed; InvalidConfigError if the port cannot be opened.
    """
    if not 0 <= port <= _PORT_MAX:
        raise InvalidConfigError(f"metrics_port={port}: expected a port from 0 to {_PORT_MAX}")
    advice = "metrics require prometheus-client, which is not installed: pip install 'hoodie[metrics]'"
    client = library("prometheus_client", advice)
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(_Collector(states))
    try:
        server, thread = client.start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise InvalidConfigError(
            f"metrics: {host}:{port} cannot be opened: {error}; choose another metrics_port or metrics_host"
        ) from error
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Collector:
    """Reads the states of flows when a client of the port requires it."""

    def __init__(self, states: Sequence[FlowState]) -> None:
        self._states = states

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield GaugeMetricFamily("hoodie_ingest_up", "1 while flows run in this process", value=1)
        for name, about, number in _GAUGES:
            gauge = GaugeMetricFamily(f"hoodie_ingest_{name}", about, labels=["flow"])
            for state in self._states:
                if (value := number(state)) is not None:
                    gauge.add_metric([state.name], value)
            yield gauge
        for name, about, count in _COUNTERS:
            counter = CounterMetricFamily(f"hoodie_ingest_{name}", about, labels=["flow"])
            for state in self._states:
                counter.add_metric([state.name], count(state))
            yield counter
