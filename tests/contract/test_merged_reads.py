"""Rows that are partly in base files and partly in logs come out the same on every engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.files.base_file import BaseFileWriter
from hoodie.read.plan import plan_scan
from hoodie.records.condition import Condition
from hoodie.records.merging import mergers
from hoodie.spark import read_scan, small_tables, superseded
from tests.contract.table_lanes import ON_WORKERS, TIME_ZONE, TRIPS, Lane, session_with, trips
from tests.contract.test_table_evolution import NEW, OLD, OLD_ROWS
from tests.contract.test_table_values import TYPES, VALUES
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

THRESHOLD = "spark.sql.execution.arrow.localRelationThreshold"
FIRST = trips(("a", 10, 1.0, "sf"), ("b", 10, 2.0, "sf"), ("c", 10, 3.0, "sf"), ("d", 10, 4.0, "nyc"))
LATER = trips(("a", 20, 9.0, "sf"), ("b", 5, 9.0, "sf"), ("e", 1, 5.0, "sf"))
OF_LOGS: dict[str, Any] = {"type": "merge_on_read", "partition_by": "city", "ordering": "ts"}


def merged_by_workers(lane: Lane) -> hoodie.Table:
    """A new handle of the test's table, of which the driver reads no file from now on."""
    properties = lane.path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + "".join(f"{key}={value}\n" for key, value in ON_WORKERS.items()))
    return lane.open()


def driver_folds_logs(lane: Lane) -> bool:
    """On PySpark 3.5 workers return the rows of logs."""
    return hasattr(type(lane.session.range(0)), "scalar")


CONDITIONS = {
    "fare > 8": ["a"],
    "fare < 3": ["b"],
    "ts = 10": ["b", "d"],
    "id IN ('a', 'c', 'e')": ["a", "e"],
    "city = 'nyc'": ["d"],
    "fare = 1 OR fare = 3": [],
    "_hoodie_record_key = 'b' AND fare = 2": ["b"],
}


@pytest.mark.later
@pytest.mark.surface
def test_conditions_are_exact_after_the_merge(lane: Lane) -> None:
    table = lane.table(FIRST, LATER, **OF_LOGS)
    third = table.delete(lane.data(FIRST.slice(2, 1))).instant
    first, second, _ = (found.requested_time for found in table.timeline)
    merged = trips(("a", 20, 9.0, "sf"), ("b", 10, 2.0, "sf"), ("d", 10, 4.0, "nyc"), ("e", 1, 5.0, "sf"))
    logs = {row["partition_path"]: row["log_files"] for row in table.inspect.slices().to_pylist()}
    assert (logs["city=sf"], logs["city=nyc"]) == (2, 0)
    found, older = lane.read_each(table, {}, {"as_of": first})
    matching = lane.read_each(table, *({"where": where, "columns": ["id"]} for where in CONDITIONS))
    assert_same_rows(found, merged, key="id")
    assert_same_rows(older, FIRST, key="id")
    for where, rows in zip(CONDITIONS, matching, strict=True):
        assert sorted(rows["id"].to_pylist()) == CONDITIONS[where], where
        assert table.count(where) == len(CONDITIONS[where])
    changed = lane.arrow(table.changes(first))
    assert sorted(changed["id"].to_pylist()) == ["a", "e"]
    assert lane.arrow(table.changes(second, third)).num_rows == 0
    if lane.session is not None:
        assert sorted(row.id for row in table.read(where="soundex(city) = 'S100'").collect()) == ["a", "b", "e"]


def test_all_types_come_out_of_logs(lane: Lane) -> None:
    with session_with(lane.session, {TIME_ZONE: "America/St_Johns"}):
        table = lane.create(TYPES, type="merge_on_read")
        table.bulk_insert(lane.data(VALUES))
        columns = [VALUES[name].take(pa.array([1, 2, 3, 0])) for name in TYPES.names[1:]]
        turned = pa.Table.from_arrays([VALUES["id"], *columns], schema=TYPES)
        table.upsert(lane.data(turned.slice(0, 3)))
        expected = pa.concat_tables([turned.slice(0, 3), VALUES.slice(3)])
        found = lane.read(table)
        assert_same_rows(found, expected, key="id")
        assert found.schema == lane.read(table, view="read_optimized").schema
        ancient = expected.filter(pc.less(expected["day"], date(1600, 1, 1)))["id"].to_pylist()
        assert lane.read(table, where="day < DATE '1600-01-01'", columns=["id"])["id"].to_pylist() == ancient
        if lane.session is not None:
            by_workers = lane.read(merged_by_workers(lane))
            assert by_workers.schema == found.schema
            assert_same_rows(by_workers, found, key="id")
            assert_same_rows(table.to_arrow(columns=TYPES.names), expected, key="id")


def test_times_are_compared_in_the_time_zone_of_the_session(lane: Lane) -> None:
    """Rows of log files are filtered before Spark filters them, which must not lose what is a match in its zone."""
    utc = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (0, 3, 4, 12)]
    stamps = pa.array([*utc, None], pa.timestamp("us", "UTC"))
    rows = pa.table(
        {"id": [*"abcde"], "t": stamps, "day": stamps.cast(pa.date32()), "local": stamps.cast(pa.timestamp("us"))}
    )
    table = lane.table(rows, rows, schema=rows.schema, type="merge_on_read", partition_by="day")
    whole = table.to_arrow()
    wheres = [
        "t <= '2024-01-01'",
        "t < DATE '2024-01-01'",
        "t = TIMESTAMP '2023-12-31 20:30:00'",
        "t IN ('2023-12-31 20:30:00', '2024-01-01 12:00:00')",
        "t < TIMESTAMP '2024-01-01 04:00:00Z'",
        "day >= TIMESTAMP '2024-01-01 03:30:00Z'",
        "local = t OR t IS NULL",
        "day(t) = 31 AND id < 'c'",
    ]
    with session_with(lane.session, {TIME_ZONE: "America/St_Johns"}):
        if lane.session is None:
            filters = [Condition.parse(where).row_filter(whole.schema) for where in wheres]
            expected = [found.matching(whole)["id"].to_pylist() for found in filters]
        else:
            columns = [f"{where} AS c{number}" for number, where in enumerate(wheres)]
            rows_of_spark = table.read().selectExpr("id", *columns).collect()
            expected = [[row.id for row in rows_of_spark if row[1 + n]] for n in range(len(wheres))]
        found = lane.read_each(table, *({"where": where, "columns": ["id"]} for where in wheres))
        assert [sorted(rows["id"].to_pylist()) for rows in found] == [sorted(ids) for ids in expected]


def test_old_files_and_new_logs_have_the_newest_types(lane: Lane) -> None:
    table = lane.table(OLD_ROWS, schema=OLD, type="merge_on_read", partition_by="city")
    table.upsert(lane.data(table_of(NEW, ("b", 1 << 40, 0.1, "nyc", ["new"]))))
    expected = table_of(
        NEW, ("a", 1, 0.5, "sf", None), ("b", 1 << 40, 0.1, "nyc", ["new"]), ("c", None, None, "nyc", None)
    )
    found = lane.read(table)
    assert_same_rows(found, expected, key="id")
    assert (found.schema.field("n").type, found.schema.field("x").type) == (pa.int64(), pa.float64())
    assert lane.read(table, where="n > 1000000 AND x < 0.2", columns=["id"])["id"].to_pylist() == ["b"]


def test_a_merge_function_runs_where_logs_are_read_and_only_there(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    # A function of the test's own travels to the workers of every session; one of a module they would have to import.
    def summed(older: pa.Table, newer: pa.Table) -> pa.Table:
        place = newer.schema.get_field_index("fare")
        return newer.set_column(place, newer.schema.field(place), pc.add(older["fare"], newer["fare"]))

    hoodie.register_merger("summed", summed)
    table = lane.create(**OF_LOGS, merge_mode=summed, index="simple")
    table.bulk_insert(lane.data(FIRST))
    table.upsert(lane.data(trips(("a", 20, 9.0, "sf"))))
    expected = pa.concat_tables([trips(("a", 20, 10.0, "sf")), FIRST.slice(1)])
    assert_same_rows(lane.read(table), expected, key="id")
    monkeypatch.setattr(mergers, "_REGISTERED", {})
    with pytest.raises(hoodie.InvalidConfigError, match="summed"):
        lane.read(table)
    assert_same_rows(lane.read(table, where="city = 'nyc'"), FIRST.slice(3), key="id")
    assert_same_rows(lane.read(table, view="read_optimized"), FIRST, key="id")


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.surface
def test_the_data_source_merges(spark_lane: Lane, has_data_sources: None) -> None:
    table = spark_lane.table(FIRST, LATER, **OF_LOGS)
    with session_with(spark_lane.session, {"spark.sql.python.filterPushdown.enabled": "true"}):
        frame = spark_lane.session.read.format("hoodie").load(str(spark_lane.path))
        assert_same_rows(spark_lane.arrow(frame).select(TRIPS.names), table.to_arrow(TRIPS.names), key="id")
        assert sorted(row.id for row in frame.where("fare > 8").collect()) == ["a"]


@pytest.mark.spark
@pytest.mark.connect
def test_rows_are_the_same_however_files_are_scanned(spark_lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Base files of several row groups; updates, late rows, deletes, inserts, and rows that move.

    In process such rows are compared with a dict in `property/test_superseded_rows.py`.
    """
    lane = spark_lane
    write = BaseFileWriter.write

    def write_small_groups(writer: BaseFileWriter, rows: pa.Table) -> None:
        for start in range(0, rows.num_rows, 4):
            write(writer, rows.slice(start, 4))
            writer.flush()

    monkeypatch.setattr(BaseFileWriter, "write", write_small_groups)
    schema = pa.schema([*TRIPS, ("_metadata", pa.int64())])
    lane.create(schema, **OF_LOGS)
    table = hoodie.open(lane.path, spark=False)
    count = 400
    # More files than Spark lists in the driver.
    cities = ["sf", "nyc", "sf=1,é %41", *(f"c{number}" for number in range(32))]

    def batch(numbers: range, ts: int, turn: int = 0) -> pa.Table:
        columns = [
            [f"k{number:04}" for number in numbers],
            [ts] * len(numbers),
            [float(number * ts) for number in numbers],
            [cities[(number + turn) % 35] for number in numbers],
            [number * 10 for number in numbers],
        ]
        return pa.table(columns, schema=schema)

    table.bulk_insert(batch(range(count), 10))
    second = table.upsert(batch(range(0, count, 7), 20))
    table.upsert(batch(range(0, count, 5), 5))
    third = table.upsert(batch(range(0, count, 50), 30, turn=1))
    table.delete(batch(range(3, count, 31), 40))
    table.upsert(batch(range(count, count + 9), 1))
    everything = table.to_arrow()
    assert everything.num_rows == count + 9 - len(range(3, count, 31))
    changed = table.changes(second.instant)
    assert sorted(changed["id"].to_pylist()) == sorted(f"k{n:04}" for n in [*range(0, 400, 50), *range(400, 409)])
    wanted: list[dict[str, Any]] = [
        {},
        {"where": "fare > 3000 AND fare < 3300"},
        {"where": "_metadata BETWEEN 100 AND 300", "columns": ["id", "city"]},
        {"where": "id IN ('k0000', 'k0003', 'k0050', 'k0399', 'k0404')"},
        {"where": "city = 'nyc'", "columns": ["_hoodie_commit_time", "fare", "id"]},
        {"as_of": third.instant},
        {"view": "read_optimized"},
    ]

    def check(wanted: list[dict[str, Any]]) -> None:
        """Spark's rows are those of this process; one job reads what asks for all columns."""
        chosen = [{"columns": everything.column_names, **how} for how in wanted]
        whole = [how for how in chosen if how["columns"] == everything.column_names]
        read = list(zip(lane.read_each(lane.open(), *whole), whole, strict=True)) if whole else []
        read += [(lane.read(lane.open(), **how), how) for how in chosen if how not in whole]
        for found, how in read:
            assert_same_rows(found, table.to_arrow(**how), meta=True)

    def check_changes() -> None:
        assert_same_rows(lane.arrow(lane.open().changes(second.instant)), changed, meta=True)

    check(wanted)
    check_changes()
    with session_with(lane.session, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        check(wanted[:3])
    if not driver_folds_logs(lane):
        return  # Workers have merged all of the above.
    monkeypatch.setattr(superseded, "LOG_BYTES_MAX", 0)
    check(wanted[1:2])
    monkeypatch.setattr(superseded, "_SLOTTED_FILES_MAX", 0)
    check(wanted[:1])
    merged_by_workers(lane)
    check(wanted[2:4])
    check_changes()


@pytest.mark.spark
@pytest.mark.connect
def test_a_table_may_have_a_column_with_the_name_of_sparks_positions(spark_lane: Lane) -> None:
    schema = pa.schema([("id", pa.string()), ("_tmp_metadata_row_index", pa.int64())])
    table = spark_lane.table(table_of(schema, ("a", 7), ("b", 8), ("c", 9)), schema=schema, type="merge_on_read")
    table.delete(table_of(schema, ("b", 8)))
    # Spark puts positions there, with and without logs.
    assert sorted(spark_lane.read(table, columns=["id"])["id"].to_pylist()) == ["a", "c"]


@pytest.mark.spark
@pytest.mark.connect
def test_a_table_of_logs_alone_is_joined_with_itself(spark_lane: Lane) -> None:
    plan = plan_scan(spark_lane.table(FIRST, LATER, **OF_LOGS).view())
    plan = replace(plan, slices=tuple(replace(found, base_file=None) for found in plan.slices if found.log_files))
    first, second = (read_scan(spark_lane.session, plan) for _ in range(2))
    assert first.join(second, first["ts"] < second["ts"]).count() == 3


@pytest.mark.spark
@pytest.mark.connect
def test_many_rows_of_logs_are_decoded_by_tasks(spark_lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    if not driver_folds_logs(spark_lane):
        pytest.skip("workers fold all logs")
    monkeypatch.setattr(small_tables, "_FOLDED_BYTES_MAX", 0)
    session, table = spark_lane.session, spark_lane.create(TYPES, type="merge_on_read")
    table.bulk_insert(VALUES)
    table.upsert(VALUES)
    for confs, columns in (({}, TYPES.names), ({THRESHOLD: "1000000b"}, TYPES.names[::-1])):
        with session_with(session, confs):
            before = session.conf.get(THRESHOLD)
            assert_same_rows(spark_lane.read(table, columns=columns), VALUES.select(columns), key="id")
            assert session.conf.get(THRESHOLD) == before


@pytest.mark.surface
@pytest.mark.spark
def test_spark_scans_base_files_of_slices_with_logs(spark_lane: Lane, capsys: pytest.CaptureFixture[str]) -> None:
    def plan(table: hoodie.Table) -> str:
        table.read().where("fare > 2").select("city").explain()
        told = capsys.readouterr().out
        assert "ReadSchema: struct<fare:double,city:string" in told
        assert "GreaterThan(fare,2.0)" in told
        assert "hashpartitioning" not in told
        return told

    by_driver = plan(spark_lane.table(FIRST, LATER, **OF_LOGS))
    if driver_folds_logs(spark_lane):
        assert [word for word in ("Python", "InArrow", "Join") if word in by_driver] == []
    by_workers = plan(merged_by_workers(spark_lane))
    assert "LeftAnti, BuildRight" in by_workers
    assert by_workers.count("MapInArrow superseded_rows") == by_workers.count("MapInArrow merged_rows") == 1


@pytest.mark.spark
def test_a_damaged_base_file_of_a_slice_with_logs_is_named(spark_lane: Lane) -> None:
    """Cut, or another file with its name."""
    table = spark_lane.table(FIRST, LATER, **{**OF_LOGS, "partition_by": None})
    assert table.read().count() == 5
    (base,) = spark_lane.path.glob("*.parquet")
    whole = base.read_bytes()
    if driver_folds_logs(spark_lane):  # on PySpark 3.5 files are recognised by their names
        pq.write_table(pq.read_table(base), base, compression="none")
        with pytest.raises(Exception, match="does not have the bytes that the table states"):
            table.read().where("fare > 0").count()
    base.write_bytes(whole[:-20])
    with pytest.raises(Exception, match=base.name):
        spark_lane.open().read().count()
