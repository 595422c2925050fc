"""`spark.readStream.format("hoodie")`: offsets, limits and schemas of the reader; a pipeline from table to table."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HistoryLostError, InvalidConfigError, SchemaMismatchError
from hoodie.spark import stream_source
from hoodie.spark.read_options import ReadOptions, read_options
from hoodie.storage import open_store
from tests.support.streams import forget_batch
from tests.support.tables import new_table, values_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64())])
NOW = {"availableNow": True}


def trips(ts: int, *ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "ts": [ts] * len(ids), "fare": [ts / 2] * len(ids)}, schema=SCHEMA)


def has_sources() -> bool:
    return importlib.util.find_spec("pyspark.sql.datasource") is not None


def reader(table: hoodie.Table, columns: str = "id,ts,fare", **options: str) -> Any:
    """The reader as Spark makes it."""
    from hoodie.spark.stream_source import StreamOptions, TableStreamReader
    from hoodie.spark.types import spark_schema_of
    from hoodie.table.context import TableContext

    given = {} if options.get("mode") == "cdc" or not columns else {"columns": columns}
    parsed = StreamOptions.parse(open_store(table.path).spec, {**given, **options})
    schema = parsed.schema(TableContext(open_store(table.path), spark=False))
    return TableStreamReader(parsed, spark_schema_of(schema))


def rows(found: Any, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[Any, ...]]:
    batches = [batch for part in found.partitions(start, end) for batch in found.read(part)]
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    return new_table(SCHEMA, trips(1, "a", "b"), path=tmp_path / "table", ordering="ts")


@pytest.fixture(autouse=True)
def with_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of these tests runs in this process, which is not to change for later tests."""
    monkeypatch.setenv("HOODIE_TRACEBACK", "1")


def has_limits() -> bool:
    return importlib.util.find_spec("pyspark.sql.streaming.datasource") is not None  # from PySpark 4.2 on


def all_of(found: Any, start: dict[str, Any]) -> dict[str, Any]:
    if not has_limits():
        return dict(found.latestOffset())
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    return dict(found.latestOffset(start, ReadAllAvailable()))


def test_offsets_name_the_same_rows_again(table: hoodie.Table) -> None:
    found = reader(table)
    start = found.initialOffset()
    first = all_of(found, start)
    assert rows(found, start, first) == [("a", 1, 0.5), ("b", 1, 0.5)]
    assert all_of(found, first) == first
    assert rows(found, first, first) == []
    table.upsert(trips(2, "b", "c"))
    table.delete(["a"])
    second = all_of(found, first)
    assert rows(found, first, second) == [("b", 2, 1.0), ("c", 2, 1.0)]
    table.upsert(trips(3, "c"))
    again = reader(table)  # after a restart
    assert rows(again, start, first) == [("a", 1, 0.5), ("b", 1, 0.5)]
    assert rows(again, first, second) == [("b", 2, 1.0), ("c", 2, 1.0)]
    assert reader(table, since="latest").initialOffset()["until"] == all_of(again, second)["until"]
    assert reader(table, since=first["until"]).initialOffset() == first
    with pytest.raises(InvalidConfigError, match="of another source"):
        again.partitions({"logOffset": 0}, second)


@pytest.mark.parametrize("mode", ["latest", "cdc"])
def test_a_commit_while_a_stream_of_the_latest_changes_starts_is_in_its_first_batch(
    table: hoodie.Table, mode: str
) -> None:
    """Spark requests the start for the end of the first batch, and again for its rows."""
    found = reader(table, since="latest", mode=mode)
    start = found.initialOffset() if has_limits() else {}
    begun = all_of(found, start)  # PySpark 4.0 and 4.1 request only this one
    table.upsert(trips(2, "b"))
    assert found.initialOffset()["until"] == begun["until"]
    first = all_of(found, found.initialOffset())
    table.upsert(trips(3, "c"))
    # The batch fails in the sink; the query starts again with its checkpoint, or goes on.
    for one in (reader(table, since="latest", mode=mode), found):
        assert len(rows(one, one.initialOffset(), first)) == 1
        assert rows(one, one.initialOffset(), begun) == []
        second = all_of(one, first)
        assert len(rows(one, first, second)) == 1
        assert all_of(one, second) == second
    if has_limits():
        # A batch that is done and has no successor yet is no reason for another one.
        assert all_of(reader(table), second) == second
        assert all_of(found, {**second, "since": begun["until"]}) == {**second, "since": begun["until"]}


def test_a_stream_of_the_latest_changes_begins_with_its_end_on_older_pyspark(
    table: hoodie.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark 4.0 and 4.1 request the end of a batch before its start."""
    monkeypatch.setattr(stream_source, "ReadMaxRows", None)
    found = reader(table, since="latest")
    begun = found.latestOffset()
    table.upsert(trips(2, "b"))
    for one in (found, reader(table, since="latest")):
        assert rows(one, one.initialOffset(), begun) == []
    first = found.latestOffset()
    table.upsert(trips(3, "c"))
    for one in (found, reader(table, since="latest")):
        assert rows(one, one.initialOffset(), first) == [("b", 2, 1.0)]
    again = reader(table, since="latest")  # behind the first batch
    assert rows(again, first, again.latestOffset()) == [("c", 3, 1.5)]
    assert again.latestOffset() == again.latestOffset()


def jvm_reader(table: hoodie.Table, **options: str) -> Any:
    """The reader of options with names of JVM Hudi."""
    named = {f"hoodie.datasource.{name.replace('_', '.')}": value for name, value in options.items()}
    return reader(table, "", **read_options({"path": table.path, **named})[1])


def test_the_start_offset_of_jvm_hudi_is_a_completion_time(table: hoodie.Table) -> None:
    first, second = (table.upsert(trips(ts, f"k{ts}")).instant for ts in (2, 3))
    completed = {found.requested_time: found.completion_time for found in table.timeline.completed().writes().instants}
    at = {text: jvm_reader(table, streaming_startOffset=text).initialOffset()["until"] for text in (first, second)}
    assert at == {first: first, second: second}
    assert reader(table, since=first).initialOffset()["until"] == completed[first]
    for text in ("earliest", "EARLIEST", "000"):
        assert jvm_reader(table, streaming_startOffset=text).initialOffset()["until"] == ""
    assert jvm_reader(table, streaming_startOffset="Latest").initialOffset()["until"] == completed[second]
    # A query type is no reason to refuse a stream, which is incremental in any case.
    assert jvm_reader(table, query_type="read_optimized").initialOffset()["until"] == ""
    with pytest.raises(InvalidConfigError, match="unknown options"):
        reader(table, view="read_optimized")


def test_change_data_by_options_of_jvm_hudi_has_images_in_json(table: hoodie.Table) -> None:
    found = jvm_reader(table, query_type="incremental", query_incremental_format="cdc")
    start = found.initialOffset()
    first = all_of(found, start)
    table.upsert(trips(2, "b").append_column("tip", pa.array([9.0])))  # the images may have further columns
    changes = rows(found, start, first) + rows(found, first, all_of(found, first))
    assert [(op, before and json.loads(before), json.loads(after)) for op, _, before, after in changes] == [
        ("i", None, {"id": "a", "ts": 1, "fare": 0.5}),
        ("i", None, {"id": "b", "ts": 1, "fare": 0.5}),
        ("u", {"id": "b", "ts": 1, "fare": 0.5, "tip": None}, {"id": "b", "ts": 2, "fare": 1.0, "tip": 9.0}),
    ]
    query = {"path": table.path, "hoodie.datasource.query.type": "incremental"}
    with pytest.raises(InvalidConfigError, match="an incremental query needs"):
        ReadOptions.of(*read_options(query))


def test_the_beginning_of_change_data(table: hoodie.Table) -> None:
    found = reader(table, mode="cdc", flat="true")
    start = found.initialOffset()
    first = all_of(found, start)
    assert [row[0] for row in rows(found, start, first)] == ["i", "i"]
    table.upsert(trips(2, "b"))
    table.delete(["a"])
    assert sorted(row[0] for row in rows(found, first, all_of(found, first))) == ["d", "u"]


def test_a_history_that_is_gone_is_an_error(table: hoodie.Table) -> None:
    found = reader(table)
    first = all_of(found, found.initialOffset())
    for ts in range(2, 8):
        table.upsert(trips(ts, "a"), properties={"hoodie.clean.commits.retained": "1"})
    middle = table.timeline.completed().writes().instants[2].completion_time
    with pytest.raises(HistoryLostError):
        found.partitions(first, {"version": 1, "until": middle})
    assert rows(found, first, all_of(found, first)) == [("a", 7, 3.5)]
    with pytest.raises(HistoryLostError, match="restored or replaced"):
        found.partitions(all_of(found, first), first)
    # Spark asks for the schema of a stream whose checkpoint is behind the history that is gone.
    for options in ({"mode": "cdc"}, {"mode": "cdc", "since": first["until"]}, {"since": first["until"]}):
        assert "ts" in str(ReadOptions.of(*read_options({"path": table.path, **options})).schema())


def test_a_restore_that_takes_back_what_was_read_is_an_error(table: hoodie.Table) -> None:
    found = reader(table)
    kept = table.upsert(trips(2, "a"))
    table.upsert(trips(3, "b"))
    read = all_of(found, found.initialOffset())
    table.restore(kept.instant)
    table.upsert(trips(4, "a"))
    for one in (found, reader(table, mode="cdc")):
        with pytest.raises(HistoryLostError, match="was restored"):
            one.partitions(read, all_of(one, read))


def test_fields_of_structs_are_no_columns_of_streams(tmp_path: Path) -> None:
    struct = pa.field("st", pa.struct([("x", pa.int64())]))
    made = new_table(pa.schema([("id", pa.string()), struct]), path=tmp_path / "nested")
    with pytest.raises(hoodie.SchemaMismatchError, match=r"st\.x"):
        reader(made, columns="id,st.x")


def test_new_columns_stop_the_stream_and_are_there_after_a_restart(table: hoodie.Table) -> None:
    found = reader(table, "")
    start = found.initialOffset()
    first = all_of(found, start)
    table.upsert(trips(2, "b"))
    second = all_of(found, first)
    table.upsert(trips(3, "c").append_column("tip", pa.array([9.0])))
    third = all_of(found, second)
    assert len(rows(found, first, second)) == 1
    with pytest.raises(SchemaMismatchError, match=r"\['tip'\] are new"):
        found.partitions(second, third)
    again = reader(table, "")
    assert [row[-4:] for row in rows(again, first, second)] == [("b", 2, 1.0, None)]
    assert [row[-4:] for row in rows(again, second, third)] == [("c", 3, 1.5, 9.0)]
    assert rows(reader(table), second, third) == [("c", 3, 1.5)]


def test_wrong_options_are_refused(table: hoodie.Table) -> None:
    wrong = {"from 1": {"maxcommitspertrigger": "0"}, "expected mode": {"mode": "all"}}
    for says, options in {**wrong, "unknown options": {"as_of": "2024"}}.items():
        with pytest.raises(InvalidConfigError, match=says):
            reader(table, **options)


def test_batches_have_as_many_commits_files_and_bytes_as_the_options_say(table: hoodie.Table) -> None:
    if not has_limits():
        with pytest.raises(InvalidConfigError, match=r"from 4\.2 on"):
            reader(table, maxcommitspertrigger="1")
        return
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    place = reader(table, since="latest").initialOffset()
    for ts in range(2, 7):
        table.upsert(trips(ts, f"k{ts}"))
    ends = [found.completion_time for found in table.timeline.completed().writes().instants][1:]
    for options, expected in (
        ({"maxcommitspertrigger": "2"}, [ends[1], ends[3], ends[4]]),
        ({"maxfilespertrigger": "3"}, [ends[2], ends[4]]),
        ({"maxbytespertrigger": "1"}, ends),
        ({"maxbytespertrigger": "1000000", "maxfilespertrigger": "4"}, [ends[3], ends[4]]),
    ):
        found, start, batches = reader(table, **options), place, []
        while (end := found.latestOffset(start, found.getDefaultReadLimit())) != start:
            batches.append(end["until"])
            start = end
        assert batches == expected
        assert found.latestOffset(place, ReadAllAvailable())["until"] == ends[-1]
    found = reader(table)
    found.prepareForTriggerAvailableNow()
    table.upsert(trips(9, "late"))
    assert found.latestOffset(place, found.getDefaultReadLimit())["until"] == ends[-1]
    assert found.reportLatestOffset()["until"] > ends[-1]


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.surface
def test_a_pipeline_from_table_to_table(spark: SparkSession, tmp_path: Path) -> None:
    source = hoodie.create(tmp_path / "a", SCHEMA, record_key="id", ordering="ts", spark=spark)
    target = hoodie.create(tmp_path / "b", SCHEMA, record_key="id", ordering="ts", spark=spark)
    checkpoint = tmp_path / "checkpoint"
    if not has_sources():
        with pytest.raises(Exception, match="hoodie"):  # PySpark 3.5
            spark.readStream.format("hoodie").load(source.path)
        return

    def run() -> None:
        changed = spark.readStream.format("hoodie").option("columns", "id,ts,fare").load(source.path)
        target.stream(changed, checkpoint=str(checkpoint), trigger=NOW).awaitTermination()

    def same() -> None:
        assert values_of(source) == values_of(target)

    source.upsert(trips(1, "a", "b", "c"))
    run()
    same()
    source.upsert(trips(2, "b", "d"))
    source.upsert(trips(3, "d", "e"))
    run()
    same()
    commits = len(target.timeline.completed())
    forget_batch(checkpoint, 1)  # the query died before it noted the batch
    source.upsert(trips(4, "f"))
    run()
    if not has_limits():  # this run was the repeated batch only
        run()
    same()
    assert len(target.timeline.completed()) == commits + 1


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.usefixtures("has_data_sources")
def test_a_stream_of_the_latest_changes_repeats_its_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    source = hoodie.create(tmp_path / "a", SCHEMA, record_key="id", ordering="ts", spark=False)
    target = hoodie.create(tmp_path / "b", SCHEMA, record_key="id", ordering="ts", spark=spark)
    checkpoint = tmp_path / "checkpoint"
    source.upsert(trips(1, "a"))

    def run() -> None:
        changed = spark.readStream.format("hoodie").options(columns="id,ts,fare", since="latest").load(source.path)
        target.stream(changed, checkpoint=str(checkpoint), trigger=NOW).awaitTermination()

    run()
    forget_batch(checkpoint, 0)
    source.upsert(trips(2, "b"))
    for _ in range(2):  # before PySpark 4.2 the first run is the repeated batch only
        run()
    assert values_of(target) == [("b", 2, 1.0)]


@pytest.mark.spark
def test_a_copy_by_change_data_has_the_deletes_too(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    source = hoodie.create(
        tmp_path / "a", SCHEMA, record_key="id", ordering="ts", partition_by="fare", index="global_simple", spark=spark
    )
    target = hoodie.create(tmp_path / "b", SCHEMA, record_key="id", ordering="ts", spark=spark)
    if not has_sources():
        with pytest.raises(Exception, match="hoodie"):  # PySpark 3.5
            spark.readStream.format("hoodie").load(source.path)
        return

    deaths = [1]

    def apply(batch: Any, number: int) -> None:  # as in docs/streaming.md
        changes = batch.selectExpr("op", "ts_ms", "coalesce(after.id, before.id) AS id", "after.fare", "after.ts")
        order = F.struct("ts_ms", F.col("op") != "d")
        last = changes.groupBy("id").agg(F.max_by(F.struct("op", "fare", "ts"), order).alias("c")).select("id", "c.*")
        target.write_batch(last.where("op <> 'd'").drop("op"), number, identifier="copy: upserts")
        if number in deaths:
            deaths.remove(number)
            raise RuntimeError("the driver dies between the two writes")
        target.write_batch(last.where("op = 'd'").select("id"), number, operation="delete", identifier="copy: deletes")

    def run() -> None:
        changes = spark.readStream.format("hoodie").option("mode", "cdc").load(source.path)
        writer = changes.writeStream.foreachBatch(apply).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(**NOW).start().awaitTermination()
        assert values_of(source) == values_of(target)

    source.upsert(trips(1, "a", "b", "c"))
    run()
    source.delete(["a", "c"])
    source.upsert(trips(2, "b", "c"))
    with pytest.raises(Exception, match="dies between"):
        run()
    run()
    assert len(target.timeline.completed()) == 4  # two writes of each batch
    source.delete(["b"])
    run()
