"""Partitions whose time to live is over."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.commit.call import Call, ChoosePartitions
from hoodie.errors import InvalidConfigError
from hoodie.index.record.state import record_index
from hoodie.services.ttl import expire_partitions, is_expiry_due
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import Action, InstantClock, parse_instant_time
from tests.support.index_check import check_index
from tests.support.tables import TYPES, Rows, made_once, rows_of, trips, trips_store
from tests.unit.write.adopted import adopt, write

DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC)
WEEK = {"hoodie.partition.ttl.strategy.days.retain": "7"}
BY_CREATION = {**WEEK, "hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME"}


WRITES: tuple[tuple[int, Rows], ...] = (
    (40, {"a": (1, "sf")}),
    (30, {"b": (1, "nyc")}),
    (20, {"c": (1, "la")}),
    (1, {"a": (2, "sf")}),
    (0, {"d": (1, "rome")}),
)
"""How many days ago each was written: `sf` was created 40 days ago and written to yesterday."""


@made_once
def aged_table(table_type: str = "copy_on_write", table_version: int = 9) -> Table:
    table = Table(trips_store(table_type=table_type, table_version=table_version))
    zone = table.view().layout.zone
    for age, rows in WRITES:
        table._context.state.clock = InstantClock(zone, now_ms=partial(int, NOW_MS - age * DAY_MS))
        table.upsert(trips(rows))
    return table


def call_of(table: Table, properties: dict[str, str]) -> Call:
    return table._context.service(properties)


def expiring(table: Table, properties: dict[str, str]) -> list[str]:
    """The partitions that would go now."""
    return list(expire_partitions(call_of(table, properties), dry_run=True, now=NOW).partitions)


@pytest.mark.parametrize("table_type", TYPES)
def test_partitions_without_a_write_expire(table_type: str) -> None:
    table = aged_table(table_type)
    dry = expire_partitions(call_of(table, WEEK), dry_run=True, now=NOW)
    assert list(dry.partitions) == ["city=nyc", "city=la"]
    assert {**dry.counts} == {"partitions_deleted": 2, "partitions_kept": 2}
    assert len(table.timeline) == 5
    done = expire_partitions(call_of(table, WEEK), now=NOW)
    assert done.partitions == dry.partitions
    instant = table.timeline.get(done.instant or "")
    assert instant is not None
    assert instant.action is Action.REPLACE_COMMIT
    assert table.view().commit_metadata(instant).operation_type == "DELETE_PARTITION"
    assert rows_of(table.view().store) == {"a": (2, "sf"), "d": (1, "rome")}
    assert record_index(table.view()) is not None
    check_index(table.view())
    assert expire_partitions(call_of(table, WEEK), now=NOW).instant is None


@pytest.mark.parametrize("archives", [False, True])
@pytest.mark.parametrize("table_type", TYPES)
def test_writes_into_log_files_count_in_version_6(table_type: str, archives: bool) -> None:
    """There the name of a log file does not have the time of the write. All writes are of today, some ms apart."""
    table = aged_table(table_type, 6)
    last_of_sf = table.timeline.instants[3].requested_time
    if archives:
        for _ in range(4):
            table.upsert(trips({"d": (2, "rome")}))
        limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
        table.archive(properties=limits)
        assert (table.timeline.start or "") > last_of_sf
    found = {row["partition_path"]: row["latest_instant"] for row in table.inspect.partitions().to_pylist()}
    assert found["city=sf"] == last_of_sf
    in_a_week = parse_instant_time(last_of_sf, table.view().layout.zone) + timedelta(days=7)
    done = expire_partitions(call_of(table, WEEK), now=in_a_week)
    assert list(done.partitions) == ["city=nyc", "city=la"]
    assert rows_of(table.view().store).keys() == {"a", "d"}


def test_by_creation_and_limits() -> None:
    table = aged_table()
    assert expiring(table, BY_CREATION) == ["city=sf", "city=nyc", "city=la"]
    some = {**BY_CREATION, "hoodie.partition.ttl.strategy.partition.selected": "city=nyc, city=la, city=x"}
    result = table.expire_partitions(dry_run=True, properties=some)
    assert list(result.partitions) == ["city=nyc", "city=la"]
    assert result.notes == (
        "the table has no partition city=x, which hoodie.partition.ttl.strategy.partition.selected selects",
    )
    assert table.expire_partitions(dry_run=True, properties=BY_CREATION).notes == ()
    one = {**BY_CREATION, "hoodie.partition.ttl.strategy.max.delete.partitions": "1"}
    assert expiring(table, one) == ["city=sf"]
    assert expiring(table, {}) == []
    # More than 24 days of milliseconds do not fit into 32 bits.
    assert expiring(table, {"hoodie.partition.ttl.strategy.days.retain": "25"}) == ["city=nyc"]
    with pytest.raises(InvalidConfigError, match="days expected"):
        table.expire_partitions(properties={"hoodie.partition.ttl.strategy.days.retain": "9999999"})


@pytest.mark.parametrize("table_version", [6, 9])
@pytest.mark.parametrize("properties", [WEEK, BY_CREATION], ids=["by time", "by creation"])
def test_adopted_partitions_expire_after_their_adoption(
    tmp_path: Path, properties: dict[str, str], table_version: int
) -> None:
    """Skeleton files have a reserved instant, which is older than every date."""
    for city in ("nyc", "sf"):
        write(tmp_path / "raw" / f"city={city}" / "1.parquet", {"id": [city]})
    adopted = adopt(tmp_path / "raw", mode="metadata_only", partition_by="city", table_version=table_version)
    assert adopted.write is not None
    table = Table(LocalStore(str(tmp_path / "t")))
    today, in_eight_days = datetime.now(UTC), datetime.now(UTC) + timedelta(days=8)
    assert table.expire_partitions(properties=properties, dry_run=True).partitions == {}
    later = expire_partitions(call_of(table, properties), dry_run=True, now=in_eight_days)
    assert list(later.partitions) == ["city=nyc", "city=sf"]
    # Instants of a process may be ahead of its clock, by the instants that it made within one millisecond.
    dates = [parse_instant_time(since, table.view().layout.zone) for since in later.partitions.values()]
    assert all(abs(found - today) < timedelta(days=1) for found in dates)
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    for _ in range(14):
        table.upsert(pa.table({"id": ["nyc"], "city": ["nyc"]}))
    table.archive(properties=limits)
    assert adopted.write.instant < (table.timeline.start or "")
    archived = expire_partitions(call_of(table, properties), dry_run=True, now=in_eight_days).partitions
    assert archived["city=sf"] == later.partitions["city=sf"]


def test_a_partition_that_is_written_to_meanwhile_stays() -> None:
    table = aged_table()
    call = call_of(table, WEEK)

    def remove_later(late: Call, choose: ChoosePartitions) -> str | None:
        Table(table.view().store).upsert(trips({"b": (9, "nyc")}))
        return call.remove_partitions(late, choose)

    done = expire_partitions(replace(call, remove_partitions=remove_later), now=NOW)
    assert list(done.partitions) == ["city=la"]
    assert {**done.counts} == {"partitions_deleted": 1, "partitions_kept": 3}
    assert rows_of(table.view().store) == {"a": (2, "sf"), "b": (9, "nyc"), "d": (1, "rome")}


def test_after_a_commit() -> None:
    table = aged_table()
    inline = {**WEEK, "hoodie.partition.ttl.inline": "true"}
    (result,) = table.upsert(trips({"d": (2, "rome")}), properties=inline).services
    assert result.operation == "expire partitions"
    assert rows_of(table.view().store) == {"a": (2, "sf"), "d": (2, "rome")}


def test_when_it_is_due() -> None:
    table = aged_table()
    call = call_of(table, WEEK)
    assert is_expiry_due(call, table.view())
    expire_partitions(call, now=NOW, dry_run=True)
    assert is_expiry_due(call, table.view())
    assert not is_expiry_due(call_of(table, {}), table.view())
    young = Table(trips_store({"a": (1, "sf")}))
    assert not is_expiry_due(call_of(young, WEEK), young.view())
