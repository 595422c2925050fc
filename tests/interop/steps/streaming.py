"""Streams of Spark: tables as sinks and as sources, checkpoints, start offsets, change data, foreachBatch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.interop.steps.script import FORMAT, QUICK, Page, Script

PAGE = Page("Streaming writes and reads")
COLUMNS = "id int, ts bigint, v string, p string"
KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.metadata.index.column.stats.enable": "false",
}
KEYLESS = {
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.metadata.index.column.stats.enable": "false",
}
MOR = {**KEYED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
OPERATION = "hoodie.datasource.write.operation"
IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
START = "hoodie.datasource.streaming.startOffset"
CDC = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}
NOW = {"availableNow": True}
FIRST = ((1, 1, "a", "x"), (2, 1, "b", "x"), (3, 1, "c", "y"))


def _beside(it: Script, name: str) -> str:
    """Return a folder beside the tables of the page."""
    return str(Path(it.path).parent / name)


def _put(it: Script, name: str, *rows: Sequence[Any], columns: str = COLUMNS) -> None:
    """Add a file of rows to the folder `name`, later than the files that are there."""
    folder = Path(_beside(it, name))
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.iterdir()))
    names = [column.split()[0] for column in columns.split(", ")]
    file = folder / f"{number}.json"
    file.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def _files(it: Script, name: str, columns: str = COLUMNS) -> Any:
    """Return the stream of a folder, a file a batch."""
    return it.spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(_beside(it, name))


def _write(
    it: Script, frame: Any, options: dict[str, str], *, checkpoint: str = "", mode: str = "append", **trigger: Any
) -> None:
    """Write a stream to the table until it has no more rows."""
    given = {"hoodie.table.name": it.table, **QUICK, **options}
    writer = frame.writeStream.format(FORMAT).options(**given).outputMode(mode)
    writer = writer.option("checkpointLocation", _beside(it, f"checkpoint-{checkpoint or it.table}"))
    writer.trigger(**(trigger or NOW)).start(it.path).awaitTermination()


def _stream(it: Script, **options: Any) -> Any:
    """Return the table as a stream."""
    return it.spark.readStream.format(FORMAT).options(**options).load(it.path)


def _read(it: Script, name: str, frame: Any) -> Any:
    """Run a stream into Parquet files until it has no more rows, and return all rows of the files."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", _beside(it, f"checkpoint-{name}"))
    writer.trigger(**NOW).start(_beside(it, name)).awaitTermination()
    return it.spark.read.schema(frame.schema).parquet(_beside(it, name))


def _commits(it: Script) -> Any:
    """Return how many commits the table has."""
    return it.frame("commits int", (len(it.instants()),))


def _changes(frame: Any) -> Any:
    """Return the stable columns of change data."""
    return frame.select("op", "before", "after")


@PAGE.step("a stream of files creates the table; trigger once")
def _(it: Script) -> Any:
    _put(it, "in", *FIRST, (1, 2, "newer", "x"))
    _write(it, _files(it, "in"), KEYED, once=True)
    return _commits(it)


@PAGE.step("the query again without new files writes nothing")
def _(it: Script) -> Any:
    _write(it, _files(it, "in"), KEYED)
    return _commits(it)


@PAGE.step("the query again with two new files: each batch is a commit")
def _(it: Script) -> Any:
    _put(it, "in", (1, 3, "again", "x"), (4, 1, "d", "z"))
    _put(it, "in", (1, 2, "older", "x"), (3, 5, "c5", "y"))
    _write(it, _files(it, "in"), {**KEYED, OPERATION: "upsert"})
    return _commits(it)


@PAGE.step("the options of streams: retries, compaction, identifier")
def _(it: Script) -> Any:
    _put(it, "in", (5, 1, "e", "z"))
    more = {
        "hoodie.datasource.write.streaming.retry.count": "1",
        "hoodie.datasource.write.streaming.retry.interval.ms": "100",
        "hoodie.datasource.write.streaming.ignore.failed.batch": "false",
        "hoodie.datasource.write.streaming.disable.compaction": "true",
        IDENTIFIER: "default_single_writer",
    }
    _write(it, _files(it, "in"), {**KEYED, **more})
    return _commits(it)


@PAGE.step("the batch writer between two runs of a query")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (6, 1, "batch", "z")), "append", KEYED)
    _put(it, "in", (6, 2, "stream", "z"))
    _write(it, _files(it, "in"), KEYED)
    return _commits(it)


@PAGE.step("another checkpoint, under the identifier of the first query")
def _(it: Script) -> Any:
    _put(it, "other", (7, 1, "g", "z"))
    _write(it, _files(it, "other"), KEYED, checkpoint="second")
    return _commits(it)


@PAGE.step("another checkpoint with an identifier of its own")
def _(it: Script) -> Any:
    _write(it, _files(it, "other"), {**KEYED, IDENTIFIER: "second"}, checkpoint="third")
    return _commits(it)


@PAGE.step("operation delete: a stream of keys")
def _(it: Script) -> Any:
    _put(it, "gone", (4, 0, "", "z"), (77, 0, "", "z"))
    _write(it, _files(it, "gone"), {**KEYED, OPERATION: "delete", IDENTIFIER: "deletes"}, checkpoint="deletes")
    return _commits(it)


@PAGE.step("several writers, and no identifier")
def _(it: Script) -> Any:
    _put(it, "other", (8, 1, "h", "z"))
    more = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    _write(it, _files(it, "other"), {**KEYED, **more}, checkpoint="third")
    return _commits(it)


@PAGE.step("several writers, with an identifier")
def _(it: Script) -> Any:
    more = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.clean.failed.writes.policy": "LAZY",
        IDENTIFIER: "second",
    }
    _write(it, _files(it, "other"), {**KEYED, **more}, checkpoint="third")
    return _commits(it)


@PAGE.step("operation insert keeps duplicates")
def _(it: Script) -> Any:
    it.use("inserts")
    _put(it, "inserts-in", *FIRST)
    _put(it, "inserts-in", (1, 2, "twice", "x"), (1, 3, "and again", "x"))
    _write(it, _files(it, "inserts-in"), {**KEYED, OPERATION: "insert"})
    return _commits(it)


@PAGE.step("operation bulk_insert")
def _(it: Script) -> Any:
    it.use("bulk")
    _put(it, "bulk-in", *FIRST)
    _put(it, "bulk-in", (1, 2, "twice", "x"))
    _write(it, _files(it, "bulk-in"), {**KEYED, OPERATION: "bulk_insert"})
    return _commits(it)


@PAGE.step("operation insert_overwrite: the partitions of each batch")
def _(it: Script) -> None:
    _put(it, "bulk-in", (9, 1, "only", "x"))
    _write(it, _files(it, "bulk-in"), {**KEYED, OPERATION: "insert_overwrite"})


@PAGE.step("rows with _hoodie_is_deleted")
def _(it: Script) -> Any:
    it.use("flagged")
    columns = COLUMNS + ", _hoodie_is_deleted boolean"
    _put(it, "flagged-in", *((*row, False) for row in FIRST), columns=columns)
    _put(it, "flagged-in", (1, 2, "a", "x", True), (4, 1, "d", "y", False), columns=columns)
    _write(it, _files(it, "flagged-in", columns), KEYED)
    return _commits(it)


@PAGE.step("no record key")
def _(it: Script) -> Any:
    it.use("keyless")
    _put(it, "keyless-in", *FIRST)
    _put(it, "keyless-in", *FIRST[:2])
    _write(it, _files(it, "keyless-in"), KEYLESS)
    return _commits(it)


@PAGE.step("no record key, no partition column, and no option but the name")
def _(it: Script) -> Any:
    it.use("bare")
    _write(it, _files(it, "keyless-in"), {})
    return _commits(it)


@PAGE.step("partitionBy of the stream")
def _(it: Script) -> None:
    it.use("by")
    given = {"hoodie.table.name": it.table, **QUICK, "hoodie.datasource.write.recordkey.field": "id"}
    writer = _files(it, "keyless-in").writeStream.format(FORMAT).options(**given).partitionBy("p")
    writer = writer.option("checkpointLocation", _beside(it, "checkpoint-by")).trigger(**NOW)
    writer.start(it.path).awaitTermination()


@PAGE.step("merge-on-read, compaction off")
def _(it: Script) -> Any:
    it.use("mor")
    _put(it, "mor-in", *FIRST)
    _put(it, "mor-in", (1, 2, "a2", "x"), (2, 0, "older", "x"))
    _put(it, "mor-in", (3, 7, "c7", "y"), (4, 1, "d", "y"))
    _write(it, _files(it, "mor-in"), {**MOR, "hoodie.datasource.compaction.async.enable": "false"})
    return _commits(it)


@PAGE.step("merge-on-read, asynchronous compaction after each batch")
def _(it: Script) -> None:
    _put(it, "mor-in", (1, 3, "a3", "x"))
    _put(it, "mor-in", (1, 4, "a4", "x"), (5, 1, "e", "z"))
    more = {"hoodie.datasource.compaction.async.enable": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    _write(it, _files(it, "mor-in"), {**MOR, **more})


@PAGE.step("a wider schema from the next run of a query on")
def _(it: Script) -> None:
    it.use("wider")
    _put(it, "wider-in", *FIRST)
    _write(it, _files(it, "wider-in"), KEYED)
    columns = COLUMNS + ", more double"
    _put(it, "wider-in", (1, 2, "a2", "x", 0.5), (4, 1, "d", "y", 1.5), columns=columns)
    _write(it, _files(it, "wider-in", columns), KEYED)


@PAGE.step("output mode complete: counts of groups")
def _(it: Script) -> None:
    it.use("counts")
    frame = _files(it, "mor-in").groupBy("p").count()
    _write(it, frame, {"hoodie.datasource.write.recordkey.field": "p"}, mode="complete")


@PAGE.step("output mode complete: the query again")
def _(it: Script) -> None:
    _put(it, "mor-in", (6, 1, "f", "w"))
    frame = _files(it, "mor-in").groupBy("p").count()
    _write(it, frame, {"hoodie.datasource.write.recordkey.field": "p"}, mode="complete")


def _each_batch(it: Script, frame: Any, name: str, function: Callable[[Any, int], None]) -> None:
    writer = frame.writeStream.foreachBatch(function).option("checkpointLocation", _beside(it, f"checkpoint-{name}"))
    writer.trigger(**NOW).start().awaitTermination()


@PAGE.step("foreachBatch: the batch writer")
def _(it: Script) -> Any:
    it.use("each")
    _put(it, "each-in", *FIRST)
    _put(it, "each-in", (1, 2, "a2", "x"), (4, 1, "d", "z"))
    _each_batch(it, _files(it, "each-in"), "each", lambda batch, _: it.save(batch, "append", KEYED))
    return _commits(it)


@PAGE.step("foreachBatch: deletes and upserts of one batch")
def _(it: Script) -> Any:
    def apply(batch: Any, _number: int) -> None:
        it.save(batch.where("v <> ''"), "append", KEYED)
        it.save(batch.where("v = ''"), "append", {**KEYED, OPERATION: "delete"})

    _put(it, "each-in", (2, 3, "", "x"), (3, 3, "c3", "y"))
    _each_batch(it, _files(it, "each-in"), "each", apply)
    return _commits(it)


@PAGE.step("foreachBatch: MERGE INTO")
def _(it: Script) -> None:
    def merge(batch: Any, _number: int) -> None:
        batch.createOrReplaceGlobalTempView("changes")
        it.sql(
            "MERGE INTO {t} AS t USING (SELECT id, ts, v, p FROM global_temp.changes) AS s ON t.id = s.id "
            "WHEN MATCHED AND s.v = '' THEN DELETE WHEN MATCHED AND s.v <> '' THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *"
        )

    _put(it, "merge-in", (1, 2, "a2", "x"), (2, 2, "", "x"), (9, 1, "i", "z"))
    frame = _files(it, "merge-in")
    checkpoint = _beside(it, "checkpoint-merge")
    it.use("merged")
    it.sql("DROP TABLE IF EXISTS {t}")
    it.sql(
        "CREATE TABLE {t} (id int, ts bigint, v string, p string) USING hudi LOCATION '{path}' "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    it.sql("INSERT INTO {t} VALUES (1, 1, 'a', 'x'), (2, 1, 'b', 'x')")
    frame.writeStream.foreachBatch(merge).option("checkpointLocation", checkpoint).trigger(
        **NOW
    ).start().awaitTermination()


@PAGE.step("a table as a stream: all rows first")
def _(it: Script) -> Any:
    it.use("source")
    it.save(it.frame(COLUMNS, *FIRST), "append", {**KEYED, "hoodie.table.cdc.enabled": "true"})
    return _read(it, "rows", _stream(it)).drop("_hoodie_file_name")


@PAGE.step("the same stream again without new commits")
def _(it: Script) -> Any:
    return _read(it, "rows", _stream(it))


@PAGE.step("start offset latest: nothing of the commits before")
def _(it: Script) -> Any:
    return _read(it, "latest", _stream(it, **{START: "latest"}))


@PAGE.step("the same stream after an update and an insert: the changed rows")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (1, 2, "a2", "x"), (4, 1, "d", "y")), "append", KEYED)
    return _read(it, "rows", _stream(it))


@PAGE.step("the stream from the latest offset after the update")
def _(it: Script) -> Any:
    return _read(it, "latest", _stream(it, **{START: "latest"}))


@PAGE.step("the same stream after a delete and three updates of a row: its newest version")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (2, 9, "", "x")), "append", {**KEYED, OPERATION: "delete"})
    for ts in (3, 4, 5):
        it.save(it.frame(COLUMNS, (3, ts, f"c{ts}", "y")), "append", KEYED)
    return _read(it, "rows", _stream(it))


@PAGE.step("start offset 000, of a table with several commits")
def _(it: Script) -> Any:
    return _read(it, "zeros", _stream(it, **{START: "000"}))


@PAGE.step("start offset at a completion time")
def _(it: Script) -> Any:
    return _read(it, "completion", _stream(it, **{START: it.instants()[1][1]}))


@PAGE.step("start offset at a requested time")
def _(it: Script) -> Any:
    return _read(it, "requested", _stream(it, **{START: it.instants()[1][0]}))


@PAGE.step("a stream into memory, filtered and aggregated")
def _(it: Script) -> Any:
    frame = _stream(it).where("ts > 1").groupBy("p").count()
    frame.writeStream.format("memory").queryName("counted").outputMode("complete").start().processAllAvailable()
    for query in it.spark.streams.active:
        query.stop()
    return it.spark.table("counted")


@PAGE.step("change data as a stream: images are JSON text")
def _(it: Script) -> Any:
    return _changes(_read(it, "cdc", _stream(it, **CDC)))


@PAGE.step("the stream of change data after two commits")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (1, 9, "a9", "x"), (5, 1, "e", "z")), "append", KEYED)
    it.save(it.frame(COLUMNS, (4, 9, "", "y")), "append", {**KEYED, OPERATION: "delete"})
    return _changes(_read(it, "cdc", _stream(it, **CDC)))


@PAGE.step("change data of a table without it")
def _(it: Script) -> Any:
    it.use("each")
    return _read(it, "no-cdc", _stream(it, **CDC))


@PAGE.step("from one table into another")
def _(it: Script) -> Any:
    it.use("source")
    frame = _stream(it)
    it.use("copy")
    _write(it, frame, KEYED)
    return _commits(it)


@PAGE.step("from one table into another: the query again after an update")
def _(it: Script) -> Any:
    it.use("source")
    it.save(it.frame(COLUMNS, (1, 20, "a20", "x"), (6, 1, "f", "z")), "append", KEYED)
    frame = _stream(it)
    it.use("copy")
    _write(it, frame, KEYED)
    return _commits(it)


@PAGE.step("merge-on-read as a stream: all rows first")
def _(it: Script) -> Any:
    it.use("logged")
    options = {**MOR, "hoodie.compact.inline": "false"}
    it.save(it.frame(COLUMNS, *FIRST), "append", options)
    it.save(it.frame(COLUMNS, (1, 2, "a2", "x"), (2, 0, "older", "x"), (4, 1, "d", "y")), "append", options)
    return _read(it, "logged-rows", _stream(it))


@PAGE.step("merge-on-read as a stream: after updates and a delete")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (1, 3, "a3", "x"), (3, 4, "c4", "y")), "append", MOR)
    it.save(it.frame(COLUMNS, (4, 9, "", "y")), "append", {**MOR, OPERATION: "delete"})
    return _read(it, "logged-rows", _stream(it))


@PAGE.step("change data of a merge-on-read table as a stream")
def _(it: Script) -> Any:
    it.use("logged-cdc")
    options = {**MOR, "hoodie.table.cdc.enabled": "true"}
    it.save(it.frame(COLUMNS, *FIRST), "append", options)
    it.save(it.frame(COLUMNS, (1, 2, "a2", "x"), (4, 1, "d", "y")), "append", options)
    it.save(it.frame(COLUMNS, (2, 9, "", "x")), "append", {**options, OPERATION: "delete"})
    return _changes(_read(it, "logged-changes", _stream(it, **CDC)))


@PAGE.step("a stream of a path that is no table")
def _(it: Script) -> Any:
    it.use("nothing")
    return _read(it, "nothing-rows", _stream(it))
