"""Streams of Spark: tables as sinks and as sources, checkpoints, start offsets, change data, foreachBatch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.interop.steps import script
from tests.interop.steps.script import COLUMNS, FIRST, FORMAT, MERGE_ON_READ, OPERATION, QUICK, Page, Script

PAGE = Page("Streaming writes and reads")
KEYED = {**script.KEYED, "hoodie.metadata.index.column.stats.enable": "false"}
KEYLESS = {"hoodie.datasource.write.partitionpath.field": "p", "hoodie.metadata.index.column.stats.enable": "false"}
MOR = {**KEYED, **MERGE_ON_READ}
IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
START = "hoodie.datasource.streaming.startOffset"
CDC = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
NOW = {"availableNow": True}


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


def _run(
    it: Script, name: str, options: dict[str, str], *files: Sequence[Sequence[Any]], columns: str = COLUMNS, **more: Any
) -> Any:
    """Add files of rows to a folder, write the stream of the folder, and return how many commits the table has."""
    for rows in files:
        _put(it, name, *rows, columns=columns)
    _write(it, _files(it, name, columns), options, **more)
    return _commits(it)


PAGE.add(
    "a stream of files creates the table; trigger once",
    lambda it: _run(it, "in", KEYED, (*FIRST, (1, 2, "newer", "x")), once=True),
)
PAGE.add("the query again without new files writes nothing", lambda it: _run(it, "in", KEYED))


@PAGE.step("the query again with two new files: each batch is a commit")
def _(it: Script) -> Any:
    files = (((1, 3, "again", "x"), (4, 1, "d", "z")), ((1, 2, "older", "x"), (3, 5, "c5", "y")))
    return _run(it, "in", {**KEYED, OPERATION: "upsert"}, *files)


@PAGE.step("the options of streams: retries, compaction, identifier")
def _(it: Script) -> Any:
    more = {
        "hoodie.datasource.write.streaming.retry.count": "1",
        "hoodie.datasource.write.streaming.retry.interval.ms": "100",
        "hoodie.datasource.write.streaming.ignore.failed.batch": "false",
        "hoodie.datasource.write.streaming.disable.compaction": "true",
        IDENTIFIER: "default_single_writer",
    }
    return _run(it, "in", {**KEYED, **more}, ((5, 1, "e", "z"),))


@PAGE.step("the batch writer between two runs of a query")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (6, 1, "batch", "z")), "append", KEYED)
    return _run(it, "in", KEYED, ((6, 2, "stream", "z"),))


PAGE.add(
    "another checkpoint, under the identifier of the first query",
    lambda it: _run(it, "other", KEYED, ((7, 1, "g", "z"),), checkpoint="second"),
)
PAGE.add(
    "another checkpoint with an identifier of its own",
    lambda it: _run(it, "other", {**KEYED, IDENTIFIER: "second"}, checkpoint="third"),
)


@PAGE.step("operation delete: a stream of keys")
def _(it: Script) -> Any:
    options = {**KEYED, OPERATION: "delete", IDENTIFIER: "deletes"}
    return _run(it, "gone", options, ((4, 0, "", "z"), (77, 0, "", "z")), checkpoint="deletes")


SEVERAL = {**KEYED, "hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
PAGE.add(
    "several writers, and no identifier", lambda it: _run(it, "other", SEVERAL, ((8, 1, "h", "z"),), checkpoint="third")
)


@PAGE.step("several writers, with an identifier")
def _(it: Script) -> Any:
    more = {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.clean.failed.writes.policy": "LAZY",
        IDENTIFIER: "second",
    }
    return _run(it, "other", {**SEVERAL, **more}, checkpoint="third")


@PAGE.step("operation insert keeps duplicates")
def _(it: Script) -> Any:
    it.use("inserts")
    twice = ((1, 2, "twice", "x"), (1, 3, "and again", "x"))
    return _run(it, "inserts-in", {**KEYED, OPERATION: "insert"}, FIRST, twice)


PAGE.add(
    "operation bulk_insert",
    lambda it: _run(it, "bulk-in", {**KEYED, OPERATION: "bulk_insert"}, FIRST, ((1, 2, "twice", "x"),)),
    table="bulk",
)


@PAGE.step("operation insert_overwrite: the partitions of each batch")
def _(it: Script) -> None:
    _run(it, "bulk-in", {**KEYED, OPERATION: "insert_overwrite"}, ((9, 1, "only", "x"),))


@PAGE.step("rows with _hoodie_is_deleted")
def _(it: Script) -> Any:
    it.use("flagged")
    files = ([(*row, False) for row in FIRST], ((1, 2, "a", "x", True), (4, 1, "d", "y", False)))
    return _run(it, "flagged-in", KEYED, *files, columns=COLUMNS + ", _hoodie_is_deleted boolean")


PAGE.add("no record key", lambda it: _run(it, "keyless-in", KEYLESS, FIRST, FIRST[:2]), table="keyless")
PAGE.add(
    "no record key, no partition column, and no option but the name",
    lambda it: _run(it, "keyless-in", {}),
    table="bare",
)


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
    files = (FIRST, ((1, 2, "a2", "x"), (2, 0, "older", "x")), ((3, 7, "c7", "y"), (4, 1, "d", "y")))
    return _run(it, "mor-in", {**MOR, "hoodie.datasource.compaction.async.enable": "false"}, *files)


@PAGE.step("merge-on-read, asynchronous compaction after each batch")
def _(it: Script) -> None:
    more = {"hoodie.datasource.compaction.async.enable": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    _run(it, "mor-in", {**MOR, **more}, ((1, 3, "a3", "x"),), ((1, 4, "a4", "x"), (5, 1, "e", "z")))


@PAGE.step("a wider schema from the next run of a query on")
def _(it: Script) -> None:
    it.use("wider")
    _run(it, "wider-in", KEYED, FIRST)
    wider = ((1, 2, "a2", "x", 0.5), (4, 1, "d", "y", 1.5))
    _run(it, "wider-in", KEYED, wider, columns=COLUMNS + ", more double")


def _counts(it: Script) -> None:
    frame = _files(it, "mor-in").groupBy("p").count()
    _write(it, frame, {"hoodie.datasource.write.recordkey.field": "p"}, mode="complete")


PAGE.add("output mode complete: counts of groups", _counts, table="counts")


@PAGE.step("output mode complete: the query again")
def _(it: Script) -> None:
    _put(it, "mor-in", (6, 1, "f", "w"))
    _counts(it)


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
    it.use("merged")
    it.sql("DROP TABLE IF EXISTS {t}")
    it.sql(
        "CREATE TABLE {t} (id int, ts bigint, v string, p string) USING hudi LOCATION '{path}' "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    it.sql("INSERT INTO {t} VALUES (1, 1, 'a', 'x'), (2, 1, 'b', 'x')")
    _each_batch(it, _files(it, "merge-in"), "merge", merge)


@PAGE.step("a table as a stream: all rows first")
def _(it: Script) -> Any:
    it.use("source")
    it.save(it.frame(COLUMNS, *FIRST), "append", {**KEYED, "hoodie.table.cdc.enabled": "true"})
    return _read(it, "rows", _stream(it)).drop("_hoodie_file_name")


PAGE.add("the same stream again without new commits", lambda it: _read(it, "rows", _stream(it)))
PAGE.add(
    "start offset latest: nothing of the commits before",
    lambda it: _read(it, "latest", _stream(it, **{START: "latest"})),
)


@PAGE.step("the same stream after an update and an insert: the changed rows")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (1, 2, "a2", "x"), (4, 1, "d", "y")), "append", KEYED)
    return _read(it, "rows", _stream(it))


PAGE.add(
    "the stream from the latest offset after the update",
    lambda it: _read(it, "latest", _stream(it, **{START: "latest"})),
)


@PAGE.step("the same stream after a delete and three updates of a row: its newest version")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (2, 9, "", "x")), "append", {**KEYED, OPERATION: "delete"})
    for ts in (3, 4, 5):
        it.save(it.frame(COLUMNS, (3, ts, f"c{ts}", "y")), "append", KEYED)
    return _read(it, "rows", _stream(it))


PAGE.add(
    "start offset 000, of a table with several commits", lambda it: _read(it, "zeros", _stream(it, **{START: "000"}))
)
PAGE.add(
    "start offset at a completion time", lambda it: _read(it, "completion", _stream(it, **{START: it.instants()[1][1]}))
)
PAGE.add(
    "start offset at a requested time", lambda it: _read(it, "requested", _stream(it, **{START: it.instants()[1][0]}))
)


@PAGE.step("a stream into memory, filtered and aggregated")
def _(it: Script) -> Any:
    frame = _stream(it).where("ts > 1").groupBy("p").count()
    frame.writeStream.format("memory").queryName("counted").outputMode("complete").start().processAllAvailable()
    for query in it.spark.streams.active:
        query.stop()
    return it.spark.table("counted")


PAGE.add("change data as a stream: images are JSON text", lambda it: _changes(_read(it, "cdc", _stream(it, **CDC))))


@PAGE.step("the stream of change data after two commits")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (1, 9, "a9", "x"), (5, 1, "e", "z")), "append", KEYED)
    it.save(it.frame(COLUMNS, (4, 9, "", "y")), "append", {**KEYED, OPERATION: "delete"})
    return _changes(_read(it, "cdc", _stream(it, **CDC)))


PAGE.add("change data of a table without it", lambda it: _read(it, "no-cdc", _stream(it, **CDC)), table="each")


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


PAGE.add("a stream of a path that is no table", lambda it: _read(it, "nothing-rows", _stream(it)), table="nothing")
