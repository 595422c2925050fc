"""What `hoodie ui` does beside its requests: live events, checks in the background, and its end."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.storage import LocalStore
from tests.support.web_server import Client, serving


class Listener:
    """Listens to the live events of a table."""

    def __init__(self, client: Client, name: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", client.server.gate.port, timeout=20)
        self._connection.request("GET", f"/api/tables/{client.id_of(name)}/live", headers={"Cookie": client.cookie})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert (self._answer.getheader("content-type") or "").startswith("text/event-stream")
        assert self._answer.getheader("cache-control") == "no-store"

    def next(self) -> tuple[str, Any]:
        """The name and the values of the next event."""
        lines = list[str]()
        while True:
            line = self._answer.readline().decode().rstrip("\n")
            if not line and any(found.startswith("event: ") for found in lines):
                fields = dict(found.split(": ", 1) for found in lines)
                return fields["event"], json.loads(fields["data"])
            lines = [*lines, line] if line and not line.startswith(":") else []

    def leave(self) -> None:
        """Close the connection."""
        self._answer.close()
        self._connection.close()


def _wait_until(is_so: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    return hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id")


def test_a_commit_is_heard_within_two_seconds(table: hoodie.Table, tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        listener = Listener(client, "t")
        assert listener.next() == ("timeline", {"newest": None, "instants": 0, "pending": 0})
        for number in (1, 2):
            written = table.upsert({"id": [str(number)]})
            started = time.monotonic()
            while (heard := listener.next()[1])["newest"] != written.instant or heard["pending"]:
                pass
            assert time.monotonic() - started < 2
            assert heard == {"newest": written.instant, "instants": number, "pending": 0}
            # What the page reads after the event is not older than the event.
            assert client.report("t", "timeline")["rows"][0]["instant"] == written.instant


def test_listeners_share_a_watcher_that_ends_with_the_last(
    table: hoodie.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert({"id": ["a"]})
    listings, names = list[str](), LocalStore.names

    def counted(store: LocalStore, folder: str) -> list[str]:
        listings.append(folder)
        return names(store, folder)

    with serving(tmp_path) as client:
        watched = client.server.site.watchers._watchers
        listeners = [Listener(client, "t") for _ in range(3)]
        events = [listener.next() for listener in listeners]
        assert events[0] == events[1] == events[2]
        monkeypatch.setattr(LocalStore, "names", counted)
        time.sleep(2.5)
        assert set(listings) == {".hoodie/timeline"}
        assert 1 <= len(listings) <= 3
        for listener in listeners:
            assert [*watched] == [client.id_of("t")]
            listener.leave()
        _wait_until(lambda: not watched)
        del listings[:]
        time.sleep(1.5)
        assert listings == []


def test_a_table_that_goes_and_comes_back_is_heard(table: hoodie.Table, tmp_path: Path) -> None:
    table.upsert({"id": ["a"]})
    with serving(tmp_path) as client:
        listener = Listener(client, "t")
        assert listener.next()[0] == "timeline"
        (tmp_path / "t").rename(tmp_path / "away")
        kind, trouble = listener.next()
        assert (kind, str(tmp_path / "t") in trouble["error"]) == ("trouble", True)
        (tmp_path / "away").rename(tmp_path / "t")
        written = table.upsert({"id": ["a"]})
        while listener.next()[1].get("newest") != written.instant:
            pass


def test_a_check_runs_in_the_background_once_a_table(
    table: hoodie.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert({"id": ["a"]})
    goes_on, calls, verify = threading.Event(), list[bool](), hoodie.Table.verify

    def slow(table: hoodie.Table, full: bool = False) -> Any:
        calls.append(full)
        goes_on.wait(20)
        return verify(table, full)

    monkeypatch.setattr(hoodie.Table, "verify", slow)
    with serving(tmp_path) as client:
        assert client.report("t", "verify")["state"] == "none"
        for _ in range(3):
            assert client.report("t", "verify?start=1&full=1")["state"] == "running"
        _wait_until(lambda: bool(calls))
        assert calls == [True]
        assert client.report("t", "summary")["name"] == "t"
        goes_on.set()
        _wait_until(lambda: client.report("t", "verify")["state"] != "running")
        found = client.report("t", "verify")
        assert (found["state"], found["full"], found["error"]) == ("done", True, None)
        assert found["report"]["ok"]
        assert found["report"]["checked"]["rows"] == 1
        assert found["total"] == found["done"] > 0


def test_a_check_that_fails_has_its_error(table: hoodie.Table, tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        address = f"tables/{client.id_of('t')}/verify"
        (tmp_path / "t").rename(tmp_path / "away")
        client.get(f"{address}?start=1")
        _wait_until(lambda: client.get(address)["state"] == "failed")
        assert "t" in client.get(address)["error"]


def test_the_server_ends_although_somebody_listens(table: hoodie.Table, tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        listener = Listener(client, "t")
        listener.next()
        started = time.monotonic()
    assert time.monotonic() - started < 5
    listener.leave()
