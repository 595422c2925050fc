"""An object store does what a request says, and the answer is lost: for each request of each action.

The client repeats the request and succeeds; or it gives up, and the error is ours and a second call goes on. What
another writer created beside it is never taken for our own, even if its bytes are the same.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore as Backend

import hoodie
from hoodie.storage import MemoryStore, ObjectStore, Store, StoreSpec
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.timeline.locks.last_step import OUTCOME_NOT_KNOWN
from tests.support.actions import FORMS, Cell, is_restoring, sampled_cells
from tests.support.fault_store import SCHEME, register, unregister
from tests.support.recoveries import LAST, NEXT, noted, recover, without
from tests.support.samples import sample_of
from tests.support.tables import create_in, rows_of, trips

pytestmark = pytest.mark.timeout(900)  # for all requests of a cell in `make test-all`

_REQUESTS = 1
"""Requests of an action at which each event happens in a normal run; `make test-all` takes all of them."""

OURS_BY_CONTENT = re.compile(r"^\.hoodie/lock$|^(?!\.hoodie/).*\.hoodie_partition_metadata$")
"""Files of which the same bytes are as good as our own: they name their writer, or say the same for all writers."""


Event = Callable[["Service", str, Callable[[], Any], dict[str, Any]], Any]
"""What happens at a request: the service, the path, the request, and the options of a put."""


class Service(Backend):
    """An object store in memory with an event at one of the requests that change something."""

    _is_on = False

    def begin(self, event: Event, number: int | None) -> None:
        """Count requests from now on; `event` happens at the request of this number."""
        self.requests: list[tuple[str, bool]] = []
        self._event, self._number, self._counting, self._is_on = event, number, threading.Lock(), True

    def end(self) -> None:
        """Let no event happen any more."""
        self._is_on = False

    def put(self, path: str, file: Any, **options: Any) -> Any:
        is_conditional = options.get("mode", "overwrite") != "overwrite"
        if self._happens(path, is_conditional):
            return self._event(
                self, path, lambda: super(Service, self).put(path, file, **options), {"put": file, **options}
            )
        return super().put(path, file, **options)

    def copy(self, from_: str, to: str, **options: Any) -> Any:
        if self._happens(to, False):
            return self._event(self, to, lambda: super(Service, self).copy(from_, to, **options), {})
        return super().copy(from_, to, **options)

    def delete(self, paths: Any) -> Any:
        if self._happens(str(paths), False):
            return self._event(self, str(paths), lambda: super(Service, self).delete(paths), {})
        return super().delete(paths)

    def put_of_another(self, path: str, content: Any) -> None:
        super().put(path, content)

    def _happens(self, path: str, is_conditional: bool) -> bool:
        if not self._is_on:
            return False
        with self._counting:
            self.requests.append((path, is_conditional))
            return len(self.requests) == self._number


def repeat(_service: Service, _path: str, request: Callable[[], Any], _options: dict[str, Any]) -> Any:
    """The client repeats the request."""
    request()
    return request()


def give_up(_service: Service, path: str, request: Callable[[], Any], _options: dict[str, Any]) -> Any:
    """The client waits for the answer in vain, and its repetitions have no connection."""
    request()
    raise GenericError(f"operation timed out: {path}")


def come_first(service: Service, path: str, request: Callable[[], Any], options: dict[str, Any]) -> Any:
    """Another writer creates the same file with the same bytes just before."""
    if options.get("mode", "overwrite") != "overwrite":
        service.put_of_another(path, options["put"])
    return request()


@contextmanager
def served(start: MemoryStore, event: Event, number: int | None = None) -> Iterator[tuple[Service, ObjectStore]]:
    """A copy of the table in the service; absolute paths in plans lead to it."""
    service, old = Service(), start.uri("")
    store = ObjectStore(service, StoreSpec(f"{SCHEME}s3://{id(service)}/".ljust(len(old), "x")))
    for info in start.list("", recursive=True):
        store.replace(info.path, start.read(info.path).replace(old.encode(), store.uri("").encode()))
    register(store)
    service.begin(event, number)
    try:
        yield service, store
    finally:
        service.end()
        unregister(store)
        forget_all()


def requests_of(cell: Cell, start: MemoryStore) -> list[tuple[int, str, bool]]:
    """Number, path and whether it is conditional of each request of the action."""
    with served(start, repeat) as (service, store):
        cell.action.act(Table(store))
        assert rows_of(store) == cell.rows
    return [(number, path, is_conditional) for number, (path, is_conditional) in enumerate(service.requests, 1)]


def outcome(act: Callable[[Table], object], store: Store) -> tuple[hoodie.HoodieError | None, str]:
    """The error of the action, which is ours, or None; and what the error or the result says."""
    try:
        done = act(Table(store))
    except hoodie.HoodieError as error:
        return error, str(error)
    return None, repr(done)


def check_repeated(cell: Cell, store: ObjectStore, service: Service, _number: int) -> None:
    cell.action.act(Table(store))
    service.end()
    assert rows_of(store) == cell.rows
    Table(store).upsert(trips(LAST))
    assert rows_of(store) == {**cell.rows, **LAST}


def check_unanswered(cell: Cell, store: ObjectStore, service: Service, number: int) -> None:
    error, text = outcome(cell.action.act, store)
    service.end()
    found = rows_of(store)
    assert found in (cell.possible_rows if error else [cell.rows]) or is_restoring(Table(store))
    if error is not None and cell.action.method in ("insert", "bulk_insert") and found == cell.rows:
        # A caller that is told "failed" writes again, and doubles what it inserts.
        assert OUTCOME_NOT_KNOWN in text
    recover(cell, Table(store), writes_first=number % 2 == 0)
    Table(store).upsert(trips(LAST))
    assert without(rows_of(store), {**LAST, **NEXT}) in [*cell.possible_rows, cell.rows]


def check_contended(cell: Cell, store: ObjectStore, service: Service, number: int) -> None:
    error, text = outcome(cell.action.act, store)
    service.end()
    hit, _ = service.requests[number - 1]  # threads change the order of requests
    if OURS_BY_CONTENT.search(hit):
        assert error is None
    else:
        assert "another" in text, f"{hit}: {text}"
    found = rows_of(store)
    assert found in ([cell.rows] if error is None else cell.possible_rows)


CHECKS: tuple[tuple[Event, Callable[[Cell, ObjectStore, Service, int], None]], ...] = (
    (repeat, check_repeated),
    (give_up, check_unanswered),
    (come_first, check_contended),
)


@pytest.mark.parametrize("cell", sampled_cells("actions whose answers are lost", FORMS), ids=str)
def test_a_lost_answer(cell: Cell) -> None:
    start = cell.prepared()
    requests = requests_of(cell, start)
    for event, check in CHECKS:
        fitting = [number for number, _, is_conditional in requests if is_conditional or event is not come_first]
        for number in sample_of(fitting, _REQUESTS, f"{event.__name__} in {cell}"):
            with noted(cell, event.__name__, number, requests[number - 1]), served(start, event, number) as served_now:
                check(cell, served_now[1], served_now[0], number)


def test_a_table_that_is_created_while_an_answer_is_lost() -> None:
    with served(MemoryStore(), repeat) as (service, store):
        create_in(store)
        requests = list(service.requests)
    assert any(path.endswith("hoodie.properties") for path, _ in requests)
    for event in (repeat, give_up, come_first):
        for number, request in enumerate(requests, 1):
            with noted(event.__name__, request), served(MemoryStore(), event, number) as (service, store):
                refusal: hoodie.HoodieError | None = None
                try:
                    create_in(store)
                except (hoodie.TableExistsError, hoodie.StorageError) as error:
                    refusal = error
                service.end()
                assert refusal is None or event is not repeat
                if event is come_first:
                    assert isinstance(refusal, hoodie.TableExistsError) == request[1]
                with suppress(hoodie.TableExistsError):
                    create_in(store)
                Table(store).upsert(trips(LAST))
                assert rows_of(store) == LAST
