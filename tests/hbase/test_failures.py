"""HBase is down, slow, or drops connections: a clear error, nothing half-committed, and the next write goes on."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import IndexIncompleteError, IndexUnavailableError, InvalidConfigError
from hoodie.table import Table
from tests.hbase.rows import again, table_of
from tests.support.deaths import check_tidy
from tests.support.steps import once_at
from tests.support.tables import Rows, rows_of, trips
from tests.support.tcp_proxy import Proxy, proxy_to
from tests.support.zookeeper_server import free_port

TLS = Path(__file__).parent / "tls"
"""A certificate of 127.0.0.1 that signs itself, and its key, for a hundred years."""
START: Rows = {"a": (1, "sf"), "b": (1, "la")}
NEWS: Rows = {"a": (2, "la"), "c": (2, "sf")}
MANY: Rows = {f"k{number}": (1, "sf") for number in range(500)}


@pytest.fixture
def proxy(hbase: int) -> Iterator[Proxy]:
    """A proxy in front of HBase."""
    with proxy_to(hbase) as found:
        yield found


def by(proxy: Proxy, timeout_ms: int = 2000) -> dict[str, str]:
    """Options of a write that reaches HBase by the proxy, with many requests."""
    return {
        "hoodie.index.hbase.thrift.port": str(proxy.port),
        "hoodie.index.hbase.timeout.ms": str(timeout_ms),
        "hoodie.index.hbase.get.batch.size": "50",
        "hoodie.index.hbase.put.batch.size": "50",
    }


def started(options: dict[str, str]) -> Table:
    table = table_of(options)
    table.upsert(trips(START))
    return table


def check_nothing_happened(table: Table, rows: Rows = START) -> None:
    """The rows are those of before, no trace is left, and the next write finds all keys."""
    store = table.view().store
    assert rows_of(store) == rows
    check_tidy(store, has_record_index=False)
    assert again(table).upsert(trips(NEWS)).inserted == 1
    assert rows_of(store) == {**rows, **NEWS}
    assert table.index.verify().ok


def test_hbase_is_down_when_a_write_begins(options: dict[str, str]) -> None:
    table = started(options)
    port = free_port()
    down = {"hoodie.index.hbase.thrift.port": str(port)}
    before = len(table.timeline)
    for write in (table.upsert, table.bulk_insert, table.insert):
        with pytest.raises(IndexUnavailableError, match=rf"127\.0\.0\.1:{port} .*cannot be reached.*thrift2 start"):
            write(trips(NEWS), properties=down)
    assert len(table.timeline) == before
    check_nothing_happened(table)


def test_a_first_write_without_hbase_leaves_an_empty_table(options: dict[str, str]) -> None:
    table = table_of(options)
    with pytest.raises(IndexUnavailableError):
        table.upsert(trips(START), properties={"hoodie.index.hbase.thrift.port": str(free_port())})
    assert len(table.timeline) == 0
    assert table.upsert(trips(START)).inserted == 2


def test_hbase_does_not_answer(options: dict[str, str], proxy: Proxy) -> None:
    table = started(options)
    proxy.is_silent = True
    began = time.monotonic()
    with pytest.raises(IndexUnavailableError, match=r"did not answer within 500 ms"):
        table.upsert(trips(NEWS), properties=by(proxy, 500))
    assert time.monotonic() - began < 10
    check_nothing_happened(table)


def test_a_connection_that_drops_once_is_opened_again(options: dict[str, str], proxy: Proxy) -> None:
    table = started(options)
    rows = dict(START)
    for number, limit in enumerate((0, 3_000, 15_000, 30_000), 1):
        more = {f"{limit}-{key}": row for key, row in MANY.items()}
        proxy.bytes_left = limit
        table.upsert(trips(more), properties=by(proxy))
        rows |= more
        assert proxy.cuts == number
        assert table.index.verify().ok
    assert rows_of(table.view().store) == rows


@pytest.mark.parametrize("limit", [0, 500, 5_000, 30_000, 60_000])
def test_hbase_goes_away_midway(options: dict[str, str], proxy: Proxy, limit: int) -> None:
    """After so many bytes of requests: while the index is checked, while keys are read, while locations are put."""
    table = started(options)
    proxy.bytes_left, proxy.cuts_always = limit, True
    with pytest.raises(IndexUnavailableError, match=f":{proxy.port} "):
        table.upsert(trips({**MANY, **NEWS}), properties=by(proxy))
    assert proxy.cuts == 1
    check_nothing_happened(table)


def test_hbase_goes_away_between_the_puts_and_the_commit(options: dict[str, str], proxy: Proxy) -> None:
    """The check for common keys under the lock needs HBase again; without it nothing is committed."""
    table = started(options)

    def cut_off_and_write() -> None:
        proxy.bytes_left, proxy.cuts_always, proxy.cuts = 0, True, 1
        again(table).upsert(trips({"other": (1, "nyc")}))

    with once_at(Step.LOCATED, cut_off_and_write), pytest.raises(IndexUnavailableError):
        table.upsert(trips({"c": (2, "sf")}), properties=by(proxy))
    check_nothing_happened(table, {**START, "other": (1, "nyc")})


def test_a_build_that_fails_leaves_a_table_that_says_so(options: dict[str, str], proxy: Proxy) -> None:
    table = started(options)
    table.upsert(trips(MANY))
    proxy.bytes_left, proxy.cuts_always = 5_000, True
    with pytest.raises(IndexUnavailableError):
        table.index.build("hbase", properties=by(proxy))
    with pytest.raises(IndexIncompleteError, match="a build is running or did not end"):
        table.upsert(trips(NEWS))
    assert table.index.build("hbase").counts["entries"] == 502
    check_nothing_happened(table, {**START, **MANY})


def test_tls_in_front_of_hbase(options: dict[str, str], proxy: Proxy) -> None:
    """A proxy ends TLS, as stunnel does; its certificate is its own authority."""
    proxy.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    proxy.tls.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    trusted = {
        "hoodie.index.hbase.thrift.ssl": "true",
        "hoodie.index.hbase.thrift.ssl.ca.file": str(TLS / "certificate.pem"),
    }
    table = table_of({**options, "hoodie.index.hbase.thrift.port": str(proxy.port), **trusted})
    table.upsert(trips(START))
    table.upsert(trips({**MANY, **NEWS}), properties={"hoodie.index.hbase.put.batch.size": "50"})
    assert table.index.verify().ok
    rows = {**START, **MANY, **NEWS}
    of_the_system = {"hoodie.index.hbase.thrift.ssl.ca.file": ""}
    with pytest.raises(IndexUnavailableError, match=r"has a certificate that is not trusted .*self.signed"):
        table.upsert(trips(NEWS), properties=of_the_system)
    with pytest.raises(IndexUnavailableError, match=r"not trusted .*doesn't match|not trusted .*not valid for"):
        table.upsert(trips(NEWS), properties={"hoodie.index.hbase.thrift.host": "localhost"})
    with pytest.raises(InvalidConfigError, match=r"ca\.file='/missing\.pem'.*PEM file"):
        table.upsert(trips(NEWS), properties={"hoodie.index.hbase.thrift.ssl.ca.file": "/missing.pem"})
    with pytest.raises(IndexUnavailableError):
        table.upsert(trips(NEWS), properties={"hoodie.index.hbase.thrift.ssl": "false", **by(proxy, 500)})
    with pytest.raises(IndexUnavailableError):  # TLS to a port without it
        table.upsert(trips(NEWS), properties={"hoodie.index.hbase.thrift.port": str(proxy.port_of_server)})
    assert rows_of(table.view().store) == rows
