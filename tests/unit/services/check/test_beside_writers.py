"""Verify and repair beside cleans and writes find nothing in a sound table, and repair builds nothing anew."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie.commit.steps import Step, watching
from hoodie.services.check import repair, verify
from hoodie.table import Table
from tests.support.tables import new_table, rows

CLEANS = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}


def written(count: int, **properties: str) -> Table:
    """A table whose only row was written so many times."""
    versions = [rows("a", ts=number) for number in range(count)]
    return new_table(versions[0].schema, *versions, properties={**CLEANS, **properties})


def test_a_clean_that_runs_is_no_error_and_nothing_is_built_anew() -> None:
    table = written(6, **{"hoodie.clean.automatic": "false"})
    store = table.view().store
    seen: list[Any] = []

    def look(step: Step) -> None:
        if step is Step.WRITTEN:
            seen.extend([Table(store).verify(), Table(store).repair()])

    with watching(look):
        assert table.clean().counts["files_deleted"] > 0
    assert seen[0].ok, seen[0]
    assert not seen[1].counts
    assert Table(store).verify(full=True).ok


@pytest.mark.parametrize("part", ["check_metadata_table", "check_data"])
def test_writes_during_the_check_are_no_error(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    table = written(3)
    checks = getattr(verify, part)

    def beside_writes(*args: Any, **named: Any) -> Any:
        for number in range(4):
            Table(table.view().store).upsert(rows("a", ts=number))
        return checks(*args, **named)

    monkeypatch.setattr(verify, part, beside_writes)
    report = table.verify(full=True)
    assert report.ok, report


def test_a_repair_looks_again_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(2)
    store = table.view().store
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
