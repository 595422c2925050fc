"""Verify and repair beside cleans and writes find nothing in a sound table, and repair builds nothing anew."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.services.check import repair, verify
from hoodie.storage import MemoryStore
from hoodie.table import Table

CLEANS = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}


def row(number: int) -> pa.Table:
    return pa.table({"id": ["a"], "x": [number]})


def table_of(uri: str, count: int, **properties: str) -> Table:
    table = hoodie.create(uri, row(0).schema, record_key="id", properties={**CLEANS, **properties})
    for number in range(count):
        table.upsert(row(number))
    return table


def test_a_clean_that_runs_is_no_error_and_nothing_is_built_anew() -> None:
    uri = MemoryStore().uri("")
    table = table_of(uri, 6, **{"hoodie.clean.automatic": "false"})
    seen: list[Any] = []

    def look(step: Step) -> None:
        if step is Step.WRITTEN:
            seen.append(hoodie.open(uri).verify())
            seen.append(hoodie.open(uri).repair())

    with watching(look):
        assert table.clean().counts["files_deleted"] > 0
    assert seen[0].ok, seen[0]
    assert not seen[1].counts
    assert hoodie.open(uri).verify(full=True).ok


@pytest.mark.parametrize("part", ["check_metadata_table", "check_data"])
def test_writes_during_the_check_are_no_error(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    uri = MemoryStore().uri("")
    table = table_of(uri, 3)
    checks = getattr(verify, part)

    def beside_writes(*args: Any, **named: Any) -> Any:
        for number in range(4):
            hoodie.open(uri).upsert(row(number))
        return checks(*args, **named)

    monkeypatch.setattr(verify, part, beside_writes)
    report = table.verify(full=True)
    assert report.ok, report


def test_a_repair_looks_again_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    table = table_of(store.uri(""), 2)
    path = next(info.path for info in store.list("", recursive=True) if info.path.endswith(".parquet"))
    content = store.read(path)
    store.delete(path)

    def then_mended(*args: Any, **named: Any) -> Any:
        found = verify.check(*args, **named)
        store.create(path, content)
        return found

    monkeypatch.setattr(repair, "check", then_mended)
    told = table.repair(dry_run=False)
    assert [note for note in told.notes if note.startswith("not needed any more: build the metadata table anew")]
    assert not [found for found in table.history() if "rebuild" in str(found)]
