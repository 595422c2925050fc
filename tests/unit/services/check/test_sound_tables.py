"""Sound tables of all kinds and writers have no finding that fails, and none that a repair would mend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hoodie
from hoodie.services.check.kinds import KINDS
from hoodie.table import Table
from tests.support.tables import TYPES, trips, trips_store

ROWS = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}


@pytest.mark.parametrize("name", ["v6_cow", "v6_mor", "v8_cow", "v8_mor", "v9_cow", "v9_mor"])
def test_tables_of_the_jvm(golden_tables: Path, name: str) -> None:
    report = hoodie.open(golden_tables / name, spark=False).verify(full=True)
    assert report.ok
    assert not report.warnings
    assert report.checked["rows"] > 0


def _services(table: Table) -> None:
    table.upsert(trips({"a": (2, "sf"), "e": (2, "oslo")}))
    table.schedule_compaction()
    table.compact()
    table.delete(trips({"b": (3, "sf")}))
    table.schedule_compaction()


def _replaced(table: Table) -> None:
    table.insert_overwrite(trips({"x": (1, "sf")}))
    table.delete_partitions(["city=nyc"])
    table.insert_overwrite_table(trips({"a": (5, "sf"), "c": (5, "nyc")}))


def _rebuilt(table: Table) -> None:
    table.index.drop("record")
    table.upsert(trips({"d": (2, "sf")}))
    table.index.build("record")
    table.index.rebuild()


@pytest.mark.parametrize("index", ["record", "simple", "global_simple", "partitioned_record"])
@pytest.mark.parametrize("table_type", TYPES)
def test_tables_of_ours(table_type: str, index: str) -> None:
    table = Table(trips_store(table_type=table_type, index=index))
    assert table.verify(full=True).ok
    calls: list[Callable[[Table], None]] = [_replaced]
    calls += [_services] if table_type == "merge_on_read" else []
    calls += [_rebuilt] if index == "record" else []
    for call in calls:
        table.upsert(trips(ROWS))
        call(table)
        report = table.verify(full=True)
        assert report.ok, str(report)
        assert not [name for name in report.warnings if KINDS[name].is_repaired], str(report)
    assert not table.repair(dry_run=False, full=True, min_age_seconds=0).counts


def test_a_rebuild_keeps_the_statistics() -> None:
    table = Table(trips_store(ROWS))
    table.index.build("column_stats")
    before = table.view().config.metadata_partitions
    assert table.index.rebuild().counts["partitions"] == len(before) == 4
    assert table.view().config.metadata_partitions == before
    assert table.index.verify("column_stats").ok
    report = table.verify(full=True)
    assert (report.ok, dict(report.warnings)) == (True, {})


@pytest.mark.parametrize("table_type", TYPES)
def test_rows_that_stayed_in_their_first_partition_are_noted(table_type: str) -> None:
    """They are no error: the index of the table leaves them there."""
    stays = {"hoodie.simple.index.update.partition.path": "false"}
    table = Table(trips_store(ROWS, table_type=table_type, index="global_simple", properties=stays))
    assert table.verify(full=True).notes == ()
    table.upsert(trips({"a": (2, "nyc"), "c": (2, "nyc")}))
    report = table.verify(full=True)
    assert report.ok
    assert report.checked["rows"] == 3
    (note,) = report.notes
    assert note.startswith("1 rows have other values of city than their partition, e.g. the rows with the keys ['a']")
