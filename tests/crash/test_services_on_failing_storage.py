"""Storage fails once under a service and the program lives on: rows of before or after, and the next call goes on.

A call to the store fails before or after it took effect; a system call of a local disk fails, or the disk is full; the
answer of S3 is lost, or the service is busy.
"""

from __future__ import annotations

import errno
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hoodie.errors import HoodieError, StorageError
from hoodie.storage import LocalStore, MemoryStore, Store, open_store
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.contract.test_store import s3_bucket, s3_options  # noqa: F401
from tests.crash.actions import CELLS, Cell, is_restoring, moved, whole_run
from tests.crash.tables import check_tidy, rows_of, trips
from tests.support.disks import CountingDisk, FailingDisk, local_double
from tests.support.fault_store import Call, CrashPoint, FaultStore
from tests.support.samples import draw, sample_of

pytestmark = pytest.mark.timeout(900)  # for all calls of a service in `make test-all`

NAMES = ("clean", "archive", "cluster", "restore", "compact", "expire_partitions", "delete_savepoint")
SERVICES = [
    draw([cell for cell in CELLS if cell.action.name == name], 1, f"failing storage for {name}")[0] for name in NAMES
]
NEXT = {"next": (1, "rome")}
_EVER = 10**9
DISKS = [(cell, code, is_full) for cell in SERVICES[:4] for code, is_full in ((errno.EIO, False), (errno.ENOSPC, True))]
"""Service, error, and whether all later calls fail too."""


class FailingOnce(FaultStore):
    """One call gives an error of the storage; all others go through."""

    def _dies_at(self, operation: str, path: str) -> bool:
        super()._dies_at(operation, path)
        self._crashed = False
        return len(self.calls) == self._fail_at

    def _error(self, operation: str, path: str) -> Any:
        return StorageError(f"{path}: the service timed out")


def prepared(cell: Cell) -> MemoryStore:
    store = MemoryStore()
    cell.make(store)
    return store


def check_the_program_goes_on(cell: Cell, table: Table, store: Store, *, told: bool) -> None:
    """The same handle is used again; `told`: the action ended with an error."""
    if not is_restoring(table):
        assert rows_of(store) in (cell.possible_rows if told else [cell.rows])
    elif cell.action.needs_it:
        cell.action.take_up(table)
    table.upsert(trips(NEXT))
    if not cell.action.needs_it:
        cell.action.take_up(table)
    assert rows_of(store) in [{**rows, **NEXT} for rows in (cell.possible_rows if told else [cell.rows])]
    view = Table(store).view()
    indexed = {"record_index"} & {*view.config.metadata_partitions}
    check_tidy(store, has_record_index=bool(indexed))
    report = Table(store).verify(full=True)
    assert report.ok, str(report)


def run(cell: Cell, table: Table) -> bool:
    """Whether the action ended with an error; one that is not ours is not caught."""
    try:
        cell.action.act(table)
    except HoodieError:
        return True
    return False


@pytest.mark.parametrize(
    ("cell", "point"),
    sample_of([(cell, point) for cell in SERVICES for point in CrashPoint], 7, "failing calls"),
    ids=str,
)
def test_a_call_of_the_store_fails(cell: Cell, point: CrashPoint) -> None:
    start = prepared(cell)
    count = len(whole_run(cell, moved(start)).calls)
    for number in sample_of(range(1, count + 1), 1, f"failing call {point} of {cell}"):
        store = moved(start)
        failing = FailingOnce(store, number, crash_point=point)
        failing.register()
        try:
            table = Table(failing)
            told = run(cell, table)
            check_the_program_goes_on(cell, table, store, told=told)
        except BaseException as error:
            error.add_note(f"{cell}: {failing.calls[number - 1]} failed ({point.value})")
            raise
        finally:
            failing.unregister()
            forget_all()


def local_copy(store: Store, folder: Path) -> Path:
    for info in store.list("", recursive=True):
        file = folder / info.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(store.read(info.path))
    return folder


@pytest.mark.parametrize(("cell", "code", "is_lasting"), sample_of(DISKS, 4, "failing disks"), ids=str)
def test_a_local_disk_fails_or_is_full(cell: Cell, tmp_path: Path, code: int, is_lasting: bool) -> None:
    start, counted = prepared(cell), CountingDisk()
    with local_double(local_copy(start, tmp_path / "counted"), counted) as store:
        cell.action.act(Table(store))
    calls = range(1, len(counted.calls) + 1)
    for number in sample_of(calls, 1, f"{errno.errorcode[code]} in {cell}"):
        root = local_copy(start, tmp_path / f"failed {number}")
        disk = FailingDisk(code, number, last=_EVER if is_lasting else number)
        try:
            with local_double(root, disk) as store:
                told = run(cell, Table(store))
            forget_all()
            check_the_program_goes_on(cell, Table(LocalStore(root)), LocalStore(root), told=told)
        except BaseException as error:
            error.add_note(f"{cell}: {errno.errorcode[code]} at {counted.calls[number - 1]}")
            raise


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
def proxy_of(endpoint: str) -> Iterator[Proxy]:
    server = Proxy(endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def on_s3(store: Store, target: Store) -> Store:
    for info in store.list("", recursive=True):
        target.create(info.path, store.read(info.path))
    return target


@pytest.mark.parametrize(
    ("cell", "lost"),
    sample_of([(cell, lost) for cell in SERVICES[:4] for lost in (False, True)], 1, "S3"),
    ids=str,
)
def test_s3_is_busy_or_its_answer_is_lost(
    cell: Cell,
    lost: bool,
    s3_options: dict[str, str],  # noqa: F811
    s3_bucket: str,  # noqa: F811
) -> None:
    start = prepared(cell)
    uri = f"s3://{s3_bucket}/failing-{cell.action.name}-{lost}"
    counted = on_s3(start, open_store(f"{uri}-counted", s3_options))
    with proxy_of(s3_options["aws_endpoint"]) as proxy:
        behind = {**s3_options, "aws_endpoint": f"http://127.0.0.1:{proxy.server_port}"}
        cell.action.act(Table(open_store(counted.uri("").rstrip("/"), behind)))
        numbers = range(1, len(proxy.calls) + 1)
    number = draw(numbers, 1, f"S3 {lost} {cell}")[0]
    store = on_s3(start, open_store(f"{uri}-failed", s3_options))
    with proxy_of(s3_options["aws_endpoint"]) as proxy:
        proxy.fail_at, proxy.lost = number, lost
        behind = {**s3_options, "aws_endpoint": f"http://127.0.0.1:{proxy.server_port}"}
        table = Table(open_store(store.uri("").rstrip("/"), behind))
        told = run(cell, table)
        try:
            assert len(proxy.calls) >= number
            check_the_program_goes_on(cell, table, store, told=told)
        except BaseException as error:
            error.add_note(f"{cell}: {proxy.calls[number - 1]}, lost={lost}")
            raise
        finally:
            forget_all()
