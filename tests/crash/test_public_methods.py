"""Every public method of a table changes nothing, or has a case in the list of actions that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from hoodie.files.markers import TEMP_FOLDER
from hoodie.read.inspect import Inspection
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.table.alter import TableAlter
from hoodie.table.indexes import TableIndex
from tests.support.actions import ACTIONS, EXPIRES, KINDS, START, started
from tests.support.fault_store import FaultStore
from tests.support.tables import trips

KEYS = trips({"a": START["a"]}).select(["id", "city"])


def _newest(table: Table) -> str:
    return table.timeline.completed().writes().instants[-1].requested_time


READS: Mapping[str, Callable[[Table], object]] = {
    "changes": lambda table: table.changes(),
    "changes_since": lambda table: table.changes_since(),
    "clustering_advice": lambda table: table.clustering_advice(),
    "count": lambda table: table.count(),
    "explain": lambda table: table.explain("ts = 1"),
    "filter_exists": lambda table: table.filter_exists(KEYS),
    "head": lambda table: table.head(),
    "history": lambda table: table.history(archived=True),
    "index.compare": lambda table: table.index.compare(data=KEYS),
    "index.verify": lambda table: table.index.verify(),
    "inspect.backlog": lambda table: table.inspect.backlog(),
    "inspect.changed": lambda table: table.inspect.changed(_newest(table)),
    "inspect.file_group": lambda table: table.inspect.file_group("none"),
    "inspect.files": lambda table: table.inspect.files(),
    "inspect.flows": lambda table: table.inspect.flows(),
    "inspect.growth": lambda table: table.inspect.growth(),
    "inspect.index": lambda table: table.inspect.index(),
    "inspect.index_changes": lambda table: table.inspect.index_changes("20200101"),
    "inspect.instant": lambda table: table.inspect.instant(_newest(table)),
    "inspect.locks": lambda table: table.inspect.locks(),
    "inspect.metadata": lambda table: table.inspect.metadata(),
    "inspect.partitions": lambda table: table.inspect.partitions(),
    "inspect.record": lambda table: table.inspect.record("a"),
    "inspect.schemas": lambda table: table.inspect.schemas(),
    "inspect.sizes": lambda table: table.inspect.sizes(),
    "inspect.slices": lambda table: table.inspect.slices(),
    "inspect.statistics": lambda table: table.inspect.statistics(),
    "inspect.summary": lambda table: table.inspect.summary(),
    "inspect.timeline": lambda table: table.inspect.timeline(archived=True, metadata=True),
    "inspect.view": lambda table: table.inspect.view,
    "inspect.waits": lambda table: table.inspect.waits(),
    "inspect.writers": lambda table: table.inspect.writers(),
    "path": lambda table: table.path,
    "pending_clusterings": lambda table: table.pending_clusterings(),
    "pending_compactions": lambda table: table.pending_compactions(),
    "read_keys": lambda table: table.read_keys(["a"]),
    "record_locations": lambda table: table.record_locations(["a"]),
    "savepoints": lambda table: table.savepoints(),
    "schema": lambda table: table.schema,
    "timeline": lambda table: table.timeline,
    "to_arrow": lambda table: table.to_arrow(),
    "to_batches": lambda table: table.to_batches().read_all(),
    "to_dataset": lambda table: table.to_dataset().to_table(),
    "to_duckdb": lambda table: table.to_duckdb().fetchall(),
    "to_pandas": lambda table: table.to_pandas(),
    "to_polars": lambda table: table.to_polars().collect(),
    "verify": lambda table: table.verify(full=True),
    "view": lambda table: table.view(),
}
DRY_RUNS: Mapping[str, Callable[[Table], object]] = {
    "archive": lambda table: table.archive(dry_run=True),
    "clean": lambda table: table.clean(dry_run=True),
    "downgrade": lambda table: table.downgrade(6),
    "drop_old_timeline": lambda table: table.drop_old_timeline(),
    "expire_partitions": lambda table: table.expire_partitions(dry_run=True, properties=EXPIRES),
    "repair": lambda table: table.repair(),
    "restore": lambda table: table.restore(
        table.timeline.completed().writes().instants[-2].requested_time, dry_run=True
    ),
    "rollback": lambda table: table.rollback(_newest(table), dry_run=True),
    "upgrade": lambda table: table.upgrade(),
}
ALTERS = {
    f"alter.{name}"
    for name in (
        *("add_column", "rename_column", "drop_column", "change_type", "set_comment", "allow_null", "move_column"),
        *("set_property", "unset_property"),
    )
}
"""Each is one call of `alter.run`, `alter.set_properties` or `alter.unset_properties`, which die."""
ON_SPARK = {"read", "stream"}
"""`read` plans as `to_arrow`, and `stream` calls `write_batch`; both need a Spark session: contract tests call them."""


HANDLES = ("alter", "index", "inspect")


def public_names(kind: type, prefix: str = "") -> Iterator[str]:
    """Methods and properties, except those that lead to a handle of their own."""
    return (f"{prefix}{name}" for name in dir(kind) if not name.startswith("_") and name not in HANDLES)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return started(KINDS[0], {})


def test_every_method_that_changes_a_table_dies_in_a_test() -> None:
    public = {*public_names(Table), *public_names(TableIndex, "index."), *public_names(Inspection, "inspect.")}
    public |= {*public_names(TableAlter, "alter.")}
    public |= {"inspect.index"}
    dying = {action.method for action in ACTIONS}
    assert not dying & {*READS, *ON_SPARK, *ALTERS}
    missing = public - dying - set(READS) - ON_SPARK - ALTERS
    assert not missing, f"add these to ACTIONS of tests/support/actions.py, or to READS here: {sorted(missing)}"
    assert (dying | set(READS) | ON_SPARK | ALTERS) <= public, "a method is gone"


def test_every_service_that_tells_what_it_would_do_is_tried() -> None:
    public = {name: getattr(Table, name) for name in public_names(Table)}
    with_dry_run = {name for name, method in public.items() if "dry_run" in getattr(method, "__annotations__", {})}
    assert with_dry_run == set(DRY_RUNS)


@pytest.mark.parametrize("calls", [READS, DRY_RUNS], ids=["reads", "dry runs"])
def test_what_reads_changes_nothing(store: MemoryStore, calls: Mapping[str, Callable[[Table], object]]) -> None:
    counting = FaultStore(store)
    counting.register()
    try:
        for name, call in calls.items():
            call(Table(counting))
            changed = [made for made in counting.calls if not made.path.startswith(f"{TEMP_FOLDER}/")]
            assert changed == [], name
        assert store.folders(TEMP_FOLDER) == []
    finally:
        counting.unregister()
