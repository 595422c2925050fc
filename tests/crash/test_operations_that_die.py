"""Every write operation dies at storage calls, on every kind of table where it takes a way of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from hoodie.format.log.log_block import HeaderKey, parse_log_blocks
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.view.slices import list_slices
from tests.crash.tables import Rows, Write, check_recovery, check_tidy, copy_of, deaths, new_table, rows_of, trips

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "la")}
_DEATHS = 5
"""Calls of a write at which it dies in a normal run."""


KINDS: Mapping[str, Mapping[str, Any]] = {
    "copy on write": {},
    "merge on read": {"table_type": "merge_on_read"},
    "merge on read, commit time": {"table_type": "merge_on_read", "ordering": None},
    "merge on read, simple": {"table_type": "merge_on_read", "ordering": None, "index": "simple"},
    "partitioned index": {"index": "partitioned_record"},
    "partitioned index, merge on read": {"table_type": "merge_on_read", "index": "partitioned_record"},
}


@dataclass(frozen=True)
class Case:
    """A write, and the rows it leads to from `START`."""

    write: Write
    new: Rows


def _changed(changes: Mapping[str, tuple[int, str] | None]) -> Rows:
    return {key: row for key, row in {**START, **changes}.items() if row is not None}


PARTIAL = {"hoodie.python.partial.updates": "always"}
UPSERT = Case(
    lambda table: table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc"), "x": (1, "oslo")}, deleted=("c",))),
    _changed({"a": (2, "sf"), "c": None, "x": (1, "oslo")}),
)
DELETE = Case(
    lambda table: table.delete(trips({"a": (0, "sf"), "c": (0, "nyc")}).select(["id", "city"])),
    _changed({"a": None, "c": None}),
)
DELETE_WHERE = Case(lambda table: table.delete_where("id in ('a', 'c')"), _changed({"a": None, "c": None}))
UPDATE = Case(
    lambda table: table.update({"ts": "ts + 5"}, where="city in ('sf', 'nyc')", properties=PARTIAL),
    _changed({"a": (6, "sf"), "b": (6, "sf"), "c": (6, "nyc")}),
)
OVERWRITE = Case(
    lambda table: table.insert_overwrite(trips({"a": (7, "sf"), "x": (1, "oslo")})),
    {"a": (7, "sf"), "c": (1, "nyc"), "d": (1, "la"), "x": (1, "oslo")},
)
OVERWRITE_TABLE = Case(
    lambda table: table.insert_overwrite_table(trips({"a": (7, "sf"), "x": (1, "oslo")})),
    {"a": (7, "sf"), "x": (1, "oslo")},
)
DELETE_PARTITIONS = Case(lambda table: table.delete_partitions(["city=sf", "city=la"]), {"c": (1, "nyc")})
BULK_INSERT = Case(
    lambda table: table.bulk_insert(trips({"x": (1, "sf"), "y": (1, "oslo")})),
    _changed({"x": (1, "sf"), "y": (1, "oslo")}),
)

MATRIX: list[tuple[str, str, Case]] = [
    ("copy on write", "insert_overwrite_table", OVERWRITE_TABLE),
    ("copy on write", "delete_where", DELETE_WHERE),
    ("copy on write", "update", UPDATE),
    ("merge on read", "insert_overwrite", OVERWRITE),
    ("merge on read", "insert_overwrite_table", OVERWRITE_TABLE),
    ("merge on read", "delete_partitions", DELETE_PARTITIONS),
    ("merge on read", "delete", DELETE),
    ("merge on read", "delete_where", DELETE_WHERE),
    ("merge on read", "bulk_insert", BULK_INSERT),
    ("merge on read, commit time", "update", UPDATE),
    ("merge on read, commit time", "upsert", UPSERT),
    ("merge on read, simple", "update", UPDATE),
    ("merge on read, simple", "insert_overwrite", OVERWRITE),
    ("merge on read, simple", "delete_where", DELETE_WHERE),
    ("partitioned index", "upsert", UPSERT),
    ("partitioned index", "insert_overwrite_table", OVERWRITE_TABLE),
    ("partitioned index", "delete_partitions", DELETE_PARTITIONS),
    ("partitioned index, merge on read", "upsert", UPSERT),
    ("partitioned index, merge on read", "insert_overwrite", OVERWRITE),
    ("partitioned index, merge on read", "delete_where", DELETE_WHERE),
]


@pytest.fixture(scope="module")
def tables() -> Callable[[str], MemoryStore]:
    """Tables by kind, with the rows of `START`; those of merge-on-read type have log files of updates."""
    made: dict[str, MemoryStore] = {}

    def table_of(name: str) -> MemoryStore:
        if name not in made:
            store = MemoryStore()
            new_table(store, **KINDS[name])
            Table(store).upsert(trips({**START, "b": (0, "sf"), "c": (0, "nyc"), "gone": (1, "nyc")}))
            Table(store).upsert(trips({"b": (1, "sf"), "c": (1, "nyc")}))
            Table(store).delete(trips({"gone": (1, "nyc")}).select(["id", "city"]))
            made[name] = store
        return copy_of(made[name])

    return table_of


def check_death(store: Store, case: Case, index: str) -> None:
    """Old or new rows; the next writer succeeds; the index agrees with the data; nothing of the dead one is left."""
    check_recovery(store, START, case.new, has_record_index=index != "simple")
    if index == "record":  # the others have no `index.verify`; `check_recovery` compared a partitioned index
        report = Table(store).index.verify()
        assert report.ok, str(report)


@pytest.mark.parametrize(("name", "case"), [(k, c) for k, _, c in MATRIX], ids=[f"{k}, {n}" for k, n, _ in MATRIX])
def test_an_operation_that_dies(tables: Callable[[str], MemoryStore], name: str, case: Case) -> None:
    outcomes = []
    for death in deaths(tables(name), case.write, keep=_DEATHS):
        outcomes.append(rows_of(death.store))
        try:
            check_death(death.store, case, KINDS[name].get("index", "record"))
        except BaseException as error:
            error.add_note(str(death))
            raise
    assert outcomes[0] == START
    assert outcomes[-1] == case.new
    assert len(outcomes) >= _DEATHS


@pytest.mark.parametrize("case", [OVERWRITE, DELETE_PARTITIONS], ids=["insert_overwrite", "delete_partitions"])
def test_a_replace_that_dies_while_a_compaction_of_its_file_groups_is_pending(
    tables: Callable[[str], MemoryStore], case: Case
) -> None:
    """Whether it happened or not: the compaction ends, before or after the next write, and changes no row."""
    start = tables("merge on read")
    Table(start).upsert(trips({"b": (1, "sf")}))
    assert Table(start).schedule_compaction()
    for death in deaths(start, case.write, keep=_DEATHS):
        found = rows_of(death.store)
        assert found in (START, case.new), death
        if death.number % 2:
            assert Table(death.store).compact().instant, death
        Table(death.store).upsert(trips({"next": (1, "sf")}))
        while Table(death.store).compact().instant is not None:
            pass
        assert rows_of(death.store) == {**found, "next": (1, "sf")}, death
        check_tidy(death.store)


@pytest.mark.parametrize("name", ["merge on read, commit time", "merge on read, simple"])
def test_the_update_logs_the_changed_columns_only(tables: Callable[[str], MemoryStore], name: str) -> None:
    store = tables(name)
    UPDATE.write(Table(store))
    newest = Table(store).timeline.latest()
    assert newest is not None
    logs = [log for found in list_slices(Table(store).view()) for log in found.log_files]
    written = [log.path for log in logs if log.name.instant_time == newest.requested_time]
    blocks = [block for path in written for block in parse_log_blocks(store.read(path), path=path)]
    assert [HeaderKey.IS_PARTIAL in block.headers for block in blocks] == [True, True]
