"""Checks of the record index: every way in which it may differ from the data is told, with keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.staging import staged_keys
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.index.record import entries
from hoodie.index.record.entries import EntryWriter
from hoodie.results import Report
from hoodie.table import Table
from tests.support.tables import PLAIN, new_table


def trips(numbers: range, ts: int = 1) -> pa.Table:
    """Rows k<n> in two cities."""
    cities = [("sf", "nyc")[n % 2] for n in numbers]
    return pa.table({"id": [f"k{n:04}" for n in numbers], "ts": [ts] * len(numbers), "city": cities}, schema=PLAIN)


@pytest.fixture
def table() -> Table:
    """100 rows and their index."""
    four = {"hoodie.metadata.record.index.min.filegroup.count": "4"}
    return new_table(PLAIN, trips(range(100)), partition_by="city", ordering="ts", properties=four)


Damage = Callable[[pytest.MonkeyPatch], None]


def _forget_puts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EntryWriter, "put", lambda *_: None)


def _forget_deletes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EntryWriter, "delete", lambda *_: None)


def _misplace(patch: pytest.MonkeyPatch) -> None:
    """Every key goes into the bucket after its own."""
    original = file_group_index
    for module in (entries, staged_keys):
        patch.setattr(module, "file_group_index", lambda keys, n: ((original(keys, n) + 1) % n).astype(np.int32))


def _mislocate(patch: pytest.MonkeyPatch) -> None:
    original = EntryWriter.put

    def put(self: EntryWriter, keys: Any, path: str, file_id: str) -> None:
        original(self, keys, path, "00000000-0000-0000-0000-000000000000-0")

    patch.setattr(EntryWriter, "put", put)


DAMAGES: dict[str, tuple[Damage, dict[str, int]]] = {
    "no entries": (_forget_puts, {"keys without an entry": 6}),
    "no tombstones": (_forget_deletes, {"entries without a key": 3}),
    "another file group": (_mislocate, {"entries of another file group": 6}),
    "another bucket": (_misplace, {"keys without an entry": 6, "entries in a wrong bucket": 6}),
}


def check(report: Report, problems: dict[str, int]) -> None:
    """Just these problems, each with examples."""
    assert {kind: count for kind, count in report.problems.items() if count} == problems
    assert report.ok is (not problems)
    assert {finding.kind for finding in report.findings} == set(problems)
    assert all(finding.key.startswith("k0") for finding in report.findings)


@pytest.mark.parametrize("name", DAMAGES)
def test_an_index_that_differs(table: Table, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    damage, problems = DAMAGES[name]
    check(table.index.verify(), {})
    before = table.timeline.latest()
    assert before is not None
    with monkeypatch.context() as patch:
        damage(patch)
        table.insert(trips(range(100, 106)))
        if damage is _forget_deletes:
            table.delete(["k0001", "k0002", "k0003"])
    check(table.index.verify(), problems)
    since = table.index.compare("record", "simple", since=before.requested_time)
    told = {kind: count for kind, count in problems.items() if kind != "entries in a wrong bucket"}
    check(since, told)
    both = table.index.compare("record", "simple", data=trips(range(110)))
    told_by_simple = problems.get("keys without an entry", 0) + problems.get("entries of another file group", 0)
    assert both.problems["rows that only simple finds there"] == told_by_simple
    # A record index that names a file group which is gone does not find the row at all; one of a key that is gone does.
    assert both.problems["rows that only record finds there"] == problems.get("entries without a key", 0)
    text = str(table.index.verify())
    assert "keys" in text
    assert "k0" in text


def test_a_key_that_two_rows_have(table: Table) -> None:
    table.insert(trips(range(10, 13), ts=5))
    check(table.index.verify(), {"rows whose key another row has": 3})


def test_a_bounded_number_of_examples(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        _forget_puts(patch)
        table.upsert(trips(range(200, 400)))
    report = table.index.verify()
    assert report.problems["keys without an entry"] == 200
    assert len(report.findings) == 10
    assert report.to_dict()["ok"] is False


def test_a_partitioned_index_is_not_called_missing() -> None:
    table = new_table(PLAIN, trips(range(3)), partition_by="id", index="partitioned_record")
    with pytest.raises(UnsupportedError, match="has a partitioned record index"):
        table.index.verify()


def test_what_is_asked_for_must_make_sense(table: Table) -> None:
    some = trips(range(3))
    without = new_table(PLAIN, some, index="simple")
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (without.index.verify, InvalidConfigError, "has no record index"),
        (lambda: without.index.compare(data=some), InvalidConfigError, "has no record index"),
        (lambda: table.index.compare("record", "simple"), InvalidConfigError, "either data="),
        (lambda: table.index.compare("record", "record", data=some), InvalidConfigError, "expected two of"),
        (lambda: table.index.compare("record", "simple", data=pa.table({"x": [1]})), SchemaMismatchError, "id"),
    ]
    for call, error, told in calls:
        with pytest.raises(error, match=told):
            call()


def test_comparing_leaves_nothing_behind(table: Table) -> None:
    before = {info.path for info in table.view().store.list("", recursive=True)}
    assert table.index.compare("simple", "record", data=trips(range(50, 150))).ok
    assert table.index.compare("record", "global_simple", data=pa.table({"id": ["k0001", "?"]})).checked["rows"] == 2
    assert table.index.compare(since="2020-01-01").checked["keys"] == 100
    assert {info.path for info in table.view().store.list("", recursive=True)} == before
