"""The metrics of flows as Prometheus text."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest

from hoodie.errors import InvalidConfigError, SourceError
from hoodie.ingest.flow import Flow, Pace
from hoodie.ingest.metrics import metrics_served
from hoodie.ingest.runner import Runner
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.target import Target
from tests.support.flows import CREATE, Numbers


class Refused:
    """A source that fails."""

    def plan(self, request: Request) -> Batch | None:
        raise SourceError("refused")


def scraped(port: int) -> dict[str, float]:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    samples = re.findall(r"(?m)^hoodie_ingest_(\S+) (\S+)$", text)
    return {name.replace('"', ""): float(value) for name, value in samples}


def test_the_states_of_flows(tmp_path: Path) -> None:
    good = Flow(name="good", source=Numbers(5), target=Target(path=str(tmp_path / "t"), create=CREATE))
    bad = Flow(name='b"ad', source=Refused(), target=Target(path=str(tmp_path / "u"), create=CREATE))
    runner = Runner(flows=[good, bad], pace=Pace(batches_max=2))
    with metrics_served(runner.states, 0) as port:
        before = scraped(port)
        runner.run()
        found = scraped(port)
    assert before["up"] == 1
    assert "lag_rows{flow=good}" not in before
    assert before["rows_written_total{flow=good}"] == 0
    assert found["lag_rows{flow=good}"] == 1
    assert found["rows_written_total{flow=good}"] == 4
    assert found["batches_total{flow=good}"] == 2
    assert found["bytes_written_total{flow=good}"] > 1000
    assert found["bad_rows_total{flow=good}"] == 0
    assert found["failures_total{flow=good}"] == 0
    assert 0 < found["last_batch_seconds{flow=good}"] < 60
    assert found["last_success_timestamp_seconds{flow=good}"] > 1_700_000_000
    assert found["flow_failing{flow=good}"] == 0
    assert found["flow_done{flow=good}"] == 1
    assert found["flow_failing{flow=b\\ad}"] == 1
    assert found["failures_total{flow=b\\ad}"] == 1
    assert "last_success_timestamp_seconds{flow=b\\ad}" not in found
    with pytest.raises(OSError):  # noqa: PT011  (refused, of the kind that the system has)
        scraped(port)


def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidConfigError, match=f"127.0.0.1:{port} cannot be opened"), metrics_served([], port):
            pass
    with pytest.raises(InvalidConfigError, match="metrics_port=70000"), metrics_served([], 70_000):
        pass
