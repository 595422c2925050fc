"""Storage fails once under a write or a service and the program lives on: rows of before or after, and it goes on.

A call to the store fails before or after it took effect; a system call of a local disk fails, or the disk is full; the
answer of S3 is lost, or the service is busy.
"""

from __future__ import annotations

import errno
import http.client
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hoodie.errors import HoodieError, StorageError
from hoodie.storage import LocalStore, MemoryStore, Store, open_store
from hoodie.table import Table
from hoodie.timeline.locks.last_step import OUTCOME_NOT_KNOWN
from tests.contract.conftest import s3_bucket, s3_options  # noqa: F401
from tests.support.actions import CELLS, START, Cell, is_restoring
from tests.support.disks import FailingDisk, local_double
from tests.support.fault_store import Call, CrashError, CrashPoint, FaultStore
from tests.support.local_tables import UPSERTS, calls_of, local_copy
from tests.support.recoveries import NEXT, check_table, noted, numbers_of_calls, recover
from tests.support.samples import draw, sample_of
from tests.support.tables import copy_of, rows_of

pytestmark = pytest.mark.timeout(900)  # for all calls of a service in `make test-all`

NAMES = ("clean", "archive", "cluster", "restore", "compact", "expire_partitions", "delete_savepoint")
SERVICES = [
    draw([cell for cell in CELLS if cell.action.name == name], 1, f"failing storage for {name}")[0] for name in NAMES
]
WRITES = [
    cell for cell in CELLS if str(cell) in ("upsert, copy_on_write, record", "insert_overwrite, copy_on_write, record")
]
_EVER = 10**9


class FailingOnce(FaultStore):
    """One call gives an error of the storage, or (`is_ours` is false) a foreign one; all others go through."""

    def __init__(self, inner: Store, number: int, point: CrashPoint, *, is_ours: bool) -> None:
        super().__init__(inner, number, crash_point=point)
        self._is_ours = is_ours

    def _dies_at(self, operation: str, path: str) -> bool:
        super()._dies_at(operation, path)
        self._crashed = False
        return len(self.calls) == self._fail_at

    def _error(self, operation: str, path: str) -> Any:
        return StorageError(f"{path}: timed out") if self._is_ours else super()._error(operation, path)


def run(cell: Cell, table: Table) -> Exception | None:
    """The error with which the action ended; one that is not ours, nor that of a `FailingOnce`, is not caught."""
    try:
        cell.action.act(table)
    except (HoodieError, CrashError) as error:
        return error
    return None


def check_the_program_goes_on(cell: Cell, table: Table, store: Store, told: Exception | None) -> None:
    """The same handle is used again; `told`: the error with which the action ended."""
    rows = cell.rows
    if not is_restoring(table):
        rows = rows_of(store)
        assert rows in (cell.possible_rows if told else [cell.rows])
    recover(cell, table, writes_first=True)
    check_table(cell, store, {**rows, **NEXT})


def check_undone(cell: Cell, store: Store, calls: Sequence[Call], told: Exception) -> None:
    """A write whose last one of these calls failed is taken back at once, or says that it may have happened."""
    if rows_of(store) == cell.rows:
        # A caller that is told "failed" writes again, and doubles what it inserts.
        assert OUTCOME_NOT_KNOWN in str(told)
    # Whether the requested file was ours is not known if the answer is lost: then the next writer decides.
    elif not calls[-1].path.endswith(".requested") and not any("/metadata/" in call.path for call in calls):
        assert list(Table(store).timeline.pending()) == []
        assert rows_of(store) == START


@pytest.mark.parametrize(
    ("cell", "point", "is_ours"),
    [
        *sample_of([(cell, point, True) for cell, point in product(SERVICES, CrashPoint)], 7, "failing calls"),
        *((cell, point, False) for cell, point in product(WRITES, CrashPoint)),
    ],
    ids=str,
)
def test_a_call_of_the_store_fails(cell: Cell, point: CrashPoint, is_ours: bool) -> None:
    start = cell.prepared()
    kept = 1 if is_ours else 5
    for number in sample_of(numbers_of_calls(cell, start), kept, f"failing call {point} of {cell}"):
        store = copy_of(start)
        failing = FailingOnce(store, number, point, is_ours=is_ours)
        failing.register()
        table = Table(failing)
        told = run(cell, table)
        with noted(f"{cell}: {failing.calls[number - 1]} failed ({point.value})"):
            if told is not None and not is_ours:
                check_undone(cell, store, failing.calls[:number], told)
            check_the_program_goes_on(cell, table, store, told)
        failing.unregister()


DISKS = [
    *sample_of(
        [(cell, *case) for cell in SERVICES[:4] for case in ((errno.EIO, False), (errno.ENOSPC, True))], 3, "disks"
    ),
    *sample_of([*product(UPSERTS, (errno.EIO, errno.EACCES, errno.ENOSPC), (False, True))], 3, "disks under upserts"),
]
"""What runs, the error, and whether all later calls fail too."""


@pytest.mark.parametrize(("cell", "code", "is_lasting"), DISKS, ids=str)
def test_a_local_disk_fails_or_is_full(cell: Cell, tmp_path: Path, code: int, is_lasting: bool) -> None:
    start = cell.prepared()
    calls = calls_of(cell, start, tmp_path / "counted")
    for number in sample_of(range(1, len(calls) + 1), 2, f"{errno.errorcode[code]} in {cell}"):
        root = local_copy(start, tmp_path / f"failed {number}")
        disk = FailingDisk(code, number, last=_EVER if is_lasting else number)
        with noted(f"{cell}: {errno.errorcode[code]} at {calls[number - 1]}"):
            with local_double(root, disk) as store:
                told = run(cell, Table(store))
            check_the_program_goes_on(cell, Table(LocalStore(root)), LocalStore(root), told)


@pytest.mark.parametrize("cell", UPSERTS, ids=str)
def test_a_full_disk_is_told_in_our_words_whichever_stream_meets_it(cell: Cell, tmp_path: Path) -> None:
    """Arrow writes streams without a call of the store."""
    start = cell.prepared()
    calls = calls_of(cell, start, tmp_path / "counted")
    for number in [number for number, call in enumerate(calls, 1) if call.operation == "write_stream"]:
        root = local_copy(start, tmp_path / f"failed {number}")
        with noted(str(calls[number - 1])), local_double(root, FailingDisk(errno.ENOSPC, number)) as store:
            assert "No space left on device" in str(run(cell, Table(store)))


class Proxy(ThreadingHTTPServer):
    """A server before S3 that fails one of the requests that change something; `lost`: after S3 did it."""

    daemon_threads = True

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.target = urlsplit(endpoint).netloc
        self.calls: list[Call] = []
        self.fail_at: int | None = None
        self.lost = False

    def counts(self, command: str, path: str) -> bool:
        """Count a request; return whether it is the one that fails."""
        self.calls.append(Call(command, path))
        return len(self.calls) == self.fail_at


class _Forward(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fails = self.command in ("PUT", "POST", "DELETE") and self.server.counts(self.command, self.path)
        if fails and not self.server.lost:
            self.answer(503, [], b"<Error><Code>SlowDown</Code><Message>Slow down.</Message></Error>")
            return
        target = http.client.HTTPConnection(self.server.target)
        target.request(self.command, self.path, body, dict(self.headers))
        found = target.getresponse()
        content = found.read()
        target.close()
        if fails:
            self.close_connection = True
            return
        kept = [(name, value) for name, value in found.getheaders() if name.lower() not in _OWN]
        length = found.getheader("Content-Length") if self.command == "HEAD" else None
        self.answer(found.status, kept, content, length)

    def answer(self, status: int, headers: list[tuple[str, str]], body: bytes, length: str | None = None) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


_OWN = {"content-length", "connection", "transfer-encoding", "date", "server"}


@contextmanager
def behind_proxy(store: Store, options: dict[str, str]) -> Iterator[tuple[Proxy, Table]]:
    """A table of the same files whose requests go through the proxy."""
    server = Proxy(options["aws_endpoint"])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    behind = {**options, "aws_endpoint": f"http://127.0.0.1:{server.server_port}"}
    try:
        yield server, Table(open_store(store.uri("").rstrip("/"), behind))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def on_s3(start: MemoryStore, uri: str, options: dict[str, str]) -> Store:
    target = open_store(uri, options)
    for info in start.list("", recursive=True):
        target.create(info.path, start.read(info.path))
    return target


@pytest.mark.parametrize(("cell", "lost"), sample_of([*product(SERVICES[:4], (False, True))], 1, "S3"), ids=str)
def test_s3_is_busy_or_its_answer_is_lost(
    cell: Cell,
    lost: bool,
    s3_options: dict[str, str],  # noqa: F811
    s3_bucket: str,  # noqa: F811
) -> None:
    start = cell.prepared()
    uri = f"s3://{s3_bucket}/failing-{cell.action.name}-{lost}"
    with behind_proxy(on_s3(start, f"{uri}-counted", s3_options), s3_options) as (proxy, table):
        cell.action.act(table)
        calls = proxy.calls
    number = draw(range(1, len(calls) + 1), 1, f"S3 {lost} {cell}")[0]
    store = on_s3(start, f"{uri}-failed", s3_options)
    with behind_proxy(store, s3_options) as (proxy, table), noted(f"{cell}: {calls[number - 1]}, lost={lost}"):
        proxy.fail_at, proxy.lost = number, lost
        told = run(cell, table)
        assert len(proxy.calls) >= number
        check_the_program_goes_on(cell, table, store, told)
