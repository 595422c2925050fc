"""Tables on which our writer or service died: the JVM reads the rows of before or after, writes on, and so do we.

The last test takes a sample of the matrix of tests/support/actions.py; `make test-all` tries each action.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.interop.judges import Jvm, assert_all_read
from tests.support.actions import Cell, is_restoring, one_kind_each, whole_run
from tests.support.deaths import check_tidy, die_at, run_until
from tests.support.fault_store import CrashPoint
from tests.support.rows import assert_same_rows
from tests.support.samples import draw, sample_of
from tests.support.tables import SCHEMA, Rows, create_in, create_with_metadata_table, rows_of, trips

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "x": (1, "la")}

# Where our writer dies: the operation and the end of the path of the call, and whether that call still happens.
DEATHS: dict[str, tuple[str, str, CrashPoint]] = {
    "after requested": ("create", ".requested", CrashPoint.AFTER),
    "after inflight": ("create", ".inflight", CrashPoint.AFTER),
    "marker and half a data file": ("close_output", ".parquet", CrashPoint.BEFORE),
    "before the metadata table's commit": ("move", ".deltacommit", CrashPoint.BEFORE),
    "between the metadata table's commit and ours": ("move", ".deltacommit", CrashPoint.AFTER),
}
ROLLBACK_DEATHS: dict[str, tuple[str, str, CrashPoint]] = {
    "rollback requested": ("move", ".rollback.requested", CrashPoint.AFTER),
    "rollback has deleted the instant": ("delete", ".commit.requested", CrashPoint.AFTER),
}


def upsert(table: Table) -> object:
    return table.upsert(trips(CHANGE))


def crashed_table(tmp_path: Path, where: str) -> Path:
    path = tmp_path / "trips"
    store = LocalStore(str(path))
    create_in(store)
    Table(store).upsert(trips(START))
    if where in DEATHS:
        die_at(path, upsert, *DEATHS[where], tmp_path / "copy")
    else:
        die_at(path, upsert, *DEATHS["between the metadata table's commit and ours"], tmp_path / "copy")
        die_at(path, upsert, *ROLLBACK_DEATHS[where], tmp_path / "second copy")
    return path


def jvm_upsert(jvm: Jvm, path: Path, rows: pa.Table) -> None:
    jvm.write_trips(rows, path)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("where", [*DEATHS, *ROLLBACK_DEATHS])
def test_the_jvm_takes_over_from_a_dead_writer_of_ours(jvm: Jvm, tmp_path: Path, where: str) -> None:
    path = crashed_table(tmp_path, where)
    assert_all_read(jvm, path, trips(START), spark=None)
    jvm_upsert(jvm, path, trips({"b": (5, "sf"), "y": (1, "la")}))
    after_jvm = {**START, "b": (5, "sf"), "y": (1, "la")}
    assert_all_read(jvm, path, trips(after_jvm), spark=None)
    hoodie.open(path).upsert(trips({"c": (7, "nyc"), "z": (1, "sf")}))
    assert_all_read(jvm, path, trips({**after_jvm, "c": (7, "nyc"), "z": (1, "sf")}), spark=None)
    check_tidy(LocalStore(str(path)))


_CELLS = 4
"""Actions of the matrix that a normal run tries."""
_STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}


def test_the_jvm_takes_over_from_a_writer_that_died_while_it_filled_metadata_partitions(
    jvm: Jvm, tmp_path: Path
) -> None:
    path = tmp_path / "trips"
    create_with_metadata_table(LocalStore(str(path)))

    def write(table: Table) -> object:
        return table.upsert(trips(START), properties=_STATISTICS)

    die_at(path, write, "create", "00003.deltacommit.inflight", CrashPoint.AFTER, tmp_path / "copy")
    after_jvm = {"b": (5, "sf"), "y": (1, "la")}
    jvm_upsert(jvm, path, trips(after_jvm))
    assert_all_read(jvm, path, trips(after_jvm), spark=None)
    hoodie.open(path).upsert(trips({"c": (7, "nyc")}), properties=_STATISTICS)
    assert_all_read(jvm, path, trips({**after_jvm, "c": (7, "nyc")}), spark=None)
    check_tidy(LocalStore(str(path)))


def assert_jvm_reads(jvm: Jvm, path: Path, rows: Rows) -> None:
    for metadata in ("true", "false"):
        read = jvm.read(path, SCHEMA.names, options={"hoodie.metadata.enable": metadata})
        assert_same_rows(read, trips(rows), key="id")


@pytest.mark.parametrize("cell", sample_of(one_kind_each(), _CELLS, "taken up by the JVM"), ids=str)
def test_the_jvm_takes_over_from_any_action_of_ours(jvm: Jvm, tmp_path: Path, cell: Cell) -> None:
    path = tmp_path / "trips"
    calls = whole_run(cell, cell.prepared()).calls
    number = draw(range(1, len(calls) + 1), 1, f"call of {cell}")[0]
    store = cell.make(LocalStore(path))
    assert run_until(store, cell.action.act, number).crashed
    forget_all()
    try:
        check_both_go_on(jvm, path, cell)
    except BaseException as error:
        error.add_note(f"{cell}: death before call {number}, {calls[number - 1]}")
        raise


def has_statistics(store: LocalStore) -> bool:
    """Whether the table has statistics, or a dead action of ours is to build them anew."""
    config = Table(store).view().config
    stored = config.raw.get("hoodie.metadata.index.column.stats.enable")
    return "column_stats" in config.metadata_partitions or stored == "true"


def check_both_go_on(jvm: Jvm, path: Path, cell: Cell) -> None:
    """First the JVM writes, then the action is taken up, and we write."""
    store = LocalStore(path)
    if is_restoring(Table(store)):  # as docs/operations says: writers wait until the restore is completed
        cell.action.take_up(Table(store))
    rows = rows_of(store)
    assert rows in cell.possible_rows
    assert_jvm_reads(jvm, path, rows)
    jvm.write_trips(
        trips({"next": (1, "rome")}), path, table_type=cell.kind.table_type.upper(), table_version=cell.kind.version,
        options=_STATISTICS if has_statistics(store) else None,
    )  # fmt: skip
    after = rows_of(store)
    allowed = cell.possible_rows if cell.action.method == "rollback" else [rows]
    assert after in [{**some, "next": (1, "rome")} for some in allowed]
    if not cell.action.needs_it:
        cell.action.take_up(Table(store))
    Table(store).upsert(trips({"last": (1, "rome")}))
    assert rows_of(store) == {**after, "last": (1, "rome")}
    assert_jvm_reads(jvm, path, {**after, "last": (1, "rome")})
    check_tidy(store, has_record_index="record_index" in Table(store).view().config.metadata_partitions)
