"""Measure merges, change data, the data source and streams beside plain upserts, JVM Hudi and delta-rs.

`python -m bench.surfaces LANE ROWS REPEATS WORK_FOLDER` measures a lane in a separate process: `hoodie`,
`hoodie-arrow`, `hudi-jvm` or `delta-rs`. Each repetition starts with a new table of ROWS rows, so
that all steps change the same rows.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from bench.child import figures_of, print_figures, tell
from bench.data import Inputs, inputs
from bench.lanes import LANES, HoodieRecordLane, HudiJvmRecordLane
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine

_LANES = ("hoodie/4", "hudi-jvm/3.5", "hoodie-arrow/4", "delta-rs/4")
_WARM_ROWS = 20_000
_BATCH_ROWS = 1_000
_BATCHES = 8
_WARM_BATCHES = 3
_ALL = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
_STEPS = {
    "upsert": "upsert of 11% of the rows",
    "merge": "merge of the same rows, all columns",
    "merge_expressions": "merge of the same rows, expressions and a condition",
    "insert": "insert of the same rows",
    "data_source": "insert of the same rows by the data source",
    "changes": "change data of the upsert",
    "stream": f"micro-batch of {_BATCH_ROWS:,} rows, copy-on-write",
    "stream_mor": f"micro-batch of {_BATCH_ROWS:,} rows, merge-on-read",
    "for_each_mor": f"micro-batch of {_BATCH_ROWS:,} rows, merge-on-read, foreachBatch",
}
Step = Callable[[], Any]


def run(settings: Settings) -> dict[str, Any]:
    """Run all lanes one after the other."""
    told, found = machine(), {}
    rows, repeats = settings.surfaces_rows, settings.surfaces_repeats
    inputs(settings.work, rows)
    for label in _LANES:
        tell(f"surfaces: {label}, {rows:,} rows ...")
        lane, _, version = label.partition("/")
        found[lane] = figures_of("bench.surfaces", lane, rows, repeats, settings.work, version=version)
    return {"machine": told, "rows": rows, "repeats": repeats, "lanes": found}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each step, and the ratios to ours."""
    lanes = result["lanes"]
    rows = []
    for step, title in _STEPS.items():
        spark, jvm, arrow, delta = (lanes[label.partition("/")[0]].get(step) for label in _LANES)
        cells = [seconds_text(found) if found else "-" for found in (spark, jvm, arrow, delta)]
        cells.insert(2, _ratio(jvm, spark))
        cells.append(_ratio(delta, arrow))
        rows.append([title, *cells])
    title = (
        f"Tables of {result['rows']:,} rows of ten columns, record index, two cores; "
        f"{machine_line(result['machine'])}, median of {result['repeats']} (least-greatest); a micro-batch is "
        f"the median of {_BATCHES - _WARM_BATCHES} batches after {_WARM_BATCHES} to warm up. JVM Hudi keeps its record "
        "index too, and logs change data for the query of changes; delta-rs keeps no index"
    )
    head = [
        "seconds",
        "hoodie, Spark",
        "JVM Hudi 1.2.0",
        "JVM / hoodie",
        "hoodie, in process",
        "delta-rs",
        "delta-rs / hoodie",
    ]
    return "\n".join([title, "", table(head, rows), ""])


def _ratio(theirs: list[float] | None, ours: list[float] | None) -> str:
    return f"{median(theirs) / median(ours):.1f}x" if theirs and ours else "-"


class _Hoodie(HoodieRecordLane):
    """This project's steps in Spark."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._number = 0

    def steps(self, data: Inputs) -> Mapping[str, Step]:
        import hoodie

        def opened() -> Any:
            return hoodie.open(self.path, spark=self.spark)

        def merge() -> Any:
            return opened().merge(self.load(data.upsert), on="t.key = s.key")

        return {
            "upsert": lambda: opened().upsert(self.load(data.upsert)),
            "merge": lambda: merge().when_matched_update_all().when_not_matched_insert_all().execute(),
            "merge_expressions": lambda: _with_expressions(merge()).execute(),
            "insert": lambda: opened().insert(self.load(data.upsert)),
            "data_source": lambda: self.load(data.upsert).write.format("hoodie").mode("append").save(str(self.path)),
        }

    def prepare_changes(self, data: Inputs) -> Step:
        import hoodie

        self.bulk_insert(data.base)
        since = hoodie.open(self.path, spark=self.spark).timeline.latest().requested_time
        self.upsert(data.upsert)
        return lambda: _consumed(hoodie.open(self.path, spark=self.spark).changes(since=since, mode="cdc"))

    def stream(self, source: Path, table_type: str, *, for_each: bool) -> list[float]:
        import hoodie

        frame = self.load(source)
        t = hoodie.create(
            self.path, frame, record_key="key", partition_by="city", ordering="ts", type=table_type, spark=self.spark
        )
        stream = _stream_of(self.spark, source, frame)
        checkpoint = str(source.parent / "checkpoint")
        if for_each:
            path, spark = self.path, self.spark
            query = (
                stream.writeStream.foreachBatch(lambda batch, _: hoodie.open(path, spark=spark).upsert(batch) and None)
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
        else:
            query = t.stream(stream, operation="upsert", checkpoint=checkpoint, trigger={"availableNow": True})
        return _seconds_of(query)


class _Jvm(HudiJvmRecordLane):
    """The same steps by JVM Hudi."""

    def steps(self, data: Inputs) -> Mapping[str, Step]:
        def merge(clauses: str) -> None:
            self.load(data.upsert).createOrReplaceTempView("changed")
            on = "t.key = s.key AND t.city = s.city"
            self.spark.sql(f"MERGE INTO bench_target AS t USING changed AS s ON {on} {clauses}")

        clauses = (
            "WHEN MATCHED AND s.seats > 1 THEN UPDATE SET ts = s.ts, fare = t.fare + s.fare, "
            "distance = t.distance + s.distance, started = s.started WHEN NOT MATCHED THEN INSERT *"
        )
        return {
            "upsert": lambda: self.upsert(data.upsert),
            "merge": lambda: merge(_ALL),
            "merge_expressions": lambda: merge(clauses),
            "insert": lambda: self._write(data.upsert, "insert", "append"),
        }

    def announce(self) -> None:
        """Tell Spark's catalog of the table: MERGE INTO takes no path."""
        self.spark.sql("DROP TABLE IF EXISTS bench_target")
        self.spark.sql(f"CREATE TABLE bench_target USING hudi LOCATION '{self.path}'")

    def prepare_changes(self, data: Inputs) -> Step:
        options = dict(self.options)
        try:
            type(self).options = {**options, "hoodie.table.cdc.enabled": "true"}
            self.bulk_insert(data.base)
            names = sorted(p.name for p in (self.path / ".hoodie/timeline").glob(self.commits))
            since = names[-1].split("_")[1].partition(".")[0]
            self.upsert(data.upsert)
        finally:
            type(self).options = options
        read = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.query.incremental.format": "cdc",
            "hoodie.datasource.read.begin.instanttime": since,
        }
        return lambda: _consumed(self.spark.read.format("hudi").options(**read).load(str(self.path)))

    def stream(self, source: Path, table_type: str, *, for_each: bool) -> list[float]:
        frame = self.load(source)
        options = {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.table.type": table_type.upper(),
            "hoodie.datasource.write.recordkey.field": "key",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.parquet.compression.codec": "zstd",
            "hoodie.datasource.compaction.async.enable": "false",
            **self.options,
        }
        stream, path = _stream_of(self.spark, source, frame), str(self.path)
        writer = stream.writeStream.option("checkpointLocation", str(source.parent / "checkpoint"))
        if for_each:
            writer = writer.foreachBatch(
                lambda batch, _: batch.write.format("hudi").options(**options).mode("append").save(path)
            )
            return _seconds_of(writer.trigger(availableNow=True).start())
        writer = writer.format("hudi").options(**options).outputMode("append").trigger(availableNow=True)
        return _seconds_of(writer.start(path))


class _Arrow(LANES["hoodie-arrow"]):  # type: ignore[misc]
    """This project in process."""

    def steps(self, data: Inputs) -> Mapping[str, Step]:
        import hoodie

        def merge() -> Any:
            return hoodie.open(self.path, spark=False).merge(pq.read_table(data.upsert), on="t.key = s.key")

        return {
            "upsert": lambda: self.upsert(data.upsert),
            "merge": lambda: merge().when_matched_update_all().when_not_matched_insert_all().execute(),
            "merge_expressions": lambda: _with_expressions(merge()).execute(),
            "insert": lambda: hoodie.open(self.path, spark=False).insert(pq.read_table(data.upsert)),
        }

    def prepare_changes(self, data: Inputs) -> Step:
        import hoodie

        self.bulk_insert(data.base)
        since = hoodie.open(self.path, spark=False).timeline.latest().requested_time
        self.upsert(data.upsert)
        return lambda: hoodie.open(self.path, spark=False).changes(since=since, mode="cdc").num_rows


class _Delta(LANES["delta-rs"]):  # type: ignore[misc]
    """delta-rs: its upsert is a merge."""

    def steps(self, data: Inputs) -> Mapping[str, Step]:
        def expressions() -> Any:
            from deltalake import DeltaTable, WriterProperties

            merge = DeltaTable(str(self.path)).merge(
                pq.read_table(data.upsert),
                "t.key = s.key and t.city = s.city",
                source_alias="s",
                target_alias="t",
                writer_properties=WriterProperties(compression="ZSTD"),
            )
            return _with_expressions(merge).execute()

        return {"merge": lambda: self.upsert(data.upsert), "merge_expressions": expressions}


def _with_expressions(merge: Any) -> Any:
    """Add the clauses of the step `merge_expressions` to a builder of hoodie or delta-rs."""
    changed = {
        "ts": "s.ts",
        "fare": "t.fare + s.fare",
        "distance": "t.distance + s.distance",
        "started": "s.started",
    }
    if hasattr(merge, "table"):  # delta-rs has another name for the argument
        merge = merge.when_matched_update(updates=changed, predicate="s.seats > 1")
    else:
        merge = merge.when_matched_update(changed, "s.seats > 1")
    return merge.when_not_matched_insert_all()


def _consumed(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _stream_of(spark: Any, source: Path, frame: Any) -> Any:
    return spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(source))


def _seconds_of(query: Any) -> list[float]:
    """Wait for a query, and return the seconds of its batches without the first ones."""
    query.awaitTermination()
    took = [row["durationMs"]["triggerExecution"] / 1000 for row in query.recentProgress if row["numInputRows"]]
    assert len(took) == _BATCHES, f"{len(took)} batches, not {_BATCHES}"
    return took[_WARM_BATCHES:]


def _stream_source(folder: Path, rows: int) -> Path:
    """Write a file of 1,000 rows for each batch: keys of one file are in the next one too, with newer values."""
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    source.mkdir(parents=True)
    whole = pq.read_table(inputs(folder.parent, rows).base)
    for number in range(_BATCHES):
        part = whole.slice(number * _BATCH_ROWS // 2, _BATCH_ROWS)
        pq.write_table(part, source / f"{number:03d}.parquet")
    return source


_CLASSES = {"hoodie": _Hoodie, "hudi-jvm": _Jvm, "hoodie-arrow": _Arrow, "delta-rs": _Delta}


def _measure(lane: Any, rows: int, repeats: int, work: Path) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {}

    def timed(step: str, action: Step) -> None:
        started = time.perf_counter()
        action()
        seconds.setdefault(step, []).append(round(time.perf_counter() - started, 3))

    data = inputs(work, rows)
    for _ in range(repeats):
        for step, action in lane.steps(data).items():
            lane.drop()
            lane.bulk_insert(data.base)
            if hasattr(lane, "announce"):
                lane.announce()
            timed(step, action)
        if hasattr(lane, "prepare_changes"):
            lane.drop()
            timed("changes", lane.prepare_changes(data))
    if hasattr(lane, "stream"):
        ways = (("stream", "copy_on_write", False), ("stream_mor", "merge_on_read", False))
        for step, table_type, for_each in (*ways, ("for_each_mor", "merge_on_read", True)):
            lane.drop()
            source = _stream_source(work / "stream", rows)
            seconds[step] = [round(took, 3) for took in lane.stream(source, table_type, for_each=for_each)]
    return seconds


def main() -> None:
    """Run the lane that the arguments name."""
    name, rows, repeats, work = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    lane = _CLASSES[name](work / f"table-{name}")
    _measure(lane, min(rows, _WARM_ROWS), 1, work)
    found = _measure(lane, rows, repeats, work)
    lane.drop()
    print_figures(found)


if __name__ == "__main__":
    main()
