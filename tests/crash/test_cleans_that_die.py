"""A clean that dies at any storage call: rows stay, writers go on, and the next clean finishes it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from tests.crash.tables import Rows, check_tidy, copy_of, deaths, rows_of, run_until
from tests.support.cleaned_tables import data_files, table_of_versions, version_of

RETAINED = {"hoodie.clean.commits.retained": "2"}
AFTER: Rows = {"a": (6, "sf")}
_DEATHS = 5
"""Calls at which a clean dies in a normal run."""


def used_table(table_type: str) -> MemoryStore:
    """A table with old slices and a deleted partition, both before the retained window; its rows are `AFTER`."""
    table = table_of_versions(3, table_type=table_type)
    table.delete_partitions(["city=nyc"])
    if table_type == "merge_on_read":
        assert table.schedule_compaction()
        table.compact()
    for version in range(3, 7):
        table.upsert(version_of(version, "a"))
    store = table.view().store
    assert isinstance(store, MemoryStore)
    return store


def clean(table: Table) -> object:
    return table.clean(properties=RETAINED)


def expected_files(store: MemoryStore) -> dict[str, list[str]]:
    """The files that a clean that does not die leaves."""
    copied = copy_of(store)
    assert Table(copied).clean(properties=RETAINED).counts["partitions_dropped"] == 1
    return data_files(copied)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_clean_that_dies(table_type: str) -> None:
    start = used_table(table_type)
    left = expected_files(start)
    count = 0
    for death in deaths(start, clean, keep=_DEATHS):
        try:
            check_recovery(death.store, left, is_written_between=bool(death.number % 2))
        except BaseException as error:
            error.add_note(str(death))
            raise
        count += 1
    assert count >= _DEATHS


def check_recovery(store: MemoryStore, left: dict[str, list[str]], *, is_written_between: bool) -> None:
    rows = AFTER
    assert rows_of(store) == rows
    if is_written_between:
        rows = {**AFTER, "b": (1, "oslo")}
        written = version_of(1, "b").set_column(2, "city", pa.array(["oslo"]))
        Table(store).upsert(written)
        assert rows_of(store) == rows
    table = Table(store)
    table.clean(properties=RETAINED)
    if is_written_between and table.clean(dry_run=True, properties=RETAINED).counts["files_deleted"]:
        table.clean(properties=RETAINED)
    assert rows_of(store) == rows
    found = data_files(store)
    if not is_written_between:
        assert found == left
        assert sum(instant.action is Action.CLEAN for instant in table.timeline) == 1
    assert "city=nyc" not in found
    check_tidy(store)


def test_a_clean_that_dies_while_it_finishes_one_that_died() -> None:
    start = used_table("copy_on_write")
    left = expected_files(start)
    calls = run_until(copy_of(start), clean, None).calls
    deleted = next(n for n, call in enumerate(calls, 1) if call.operation == "delete" and call.path.endswith("parquet"))
    run_until(start, clean, deleted + 1)
    count = 0
    for death in deaths(start, clean, keep=_DEATHS):
        check_recovery(death.store, left, is_written_between=False)
        count += 1
    assert count >= _DEATHS
