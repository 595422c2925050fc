"""`hoodie.ingest` beside Spark's own read and write: Kafka and JDBC to a table, small batches, and idle flows.

A real broker and a real PostgreSQL on loopback. `python -m bench.ingest LANE ENDPOINT FOLDER …` measures one lane in a
process of its own, so that each lane has a session of its own; the lanes take turns.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.lanes import SESSION
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine
from hoodie.ingest.flow import Flow, Pace
from hoodie.ingest.runner import Runner
from hoodie.ingest.sources.registry import source_of
from hoodie.ingest.target import Target
from tests.support.kafka_broker import Broker, running_broker
from tests.support.postgres_server import PASSWORD, Postgres, running_postgres

_PARTITIONS = 4
_CITIES = 16
_MESSAGE_BYTES = 1000
_SMALL = 1_000
_SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string()), ("note", pa.string())]
)
_DDL = "id string, ts bigint, fare double, city string, note string"
_CREATE = {"record_key": "id", "partition_by": "city", "ordering": "ts"}
_IDLE_SECONDS = 20.0
_DRIVER = "org.postgresql.Driver"
_LANES = ("kafka-hoodie", "kafka-spark", "kafka-in-process", "jdbc-hoodie", "jdbc-spark")


def run(settings: Settings) -> dict[str, Any]:
    """Measure all lanes, each as often as the settings have it."""
    told, work, rows = machine(), settings.work / "ingest", settings.ingest_rows
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    found: dict[str, list[Any]] = {lane: [] for lane in _LANES}
    with running_broker(work / "kafka") as broker, running_postgres() as server:
        tell(f"{rows:,} messages and rows ...")
        _fill_topic(broker, "trips", range(rows))
        _fill_table(server, rows)
        for _ in range(settings.ingest_repeats):
            for lane in _LANES:
                tell(f"{lane} ...")
                endpoint = broker.servers if lane.startswith("kafka") else server.jdbc_url
                found[lane].append(figures_of("bench.ingest", lane, endpoint, work / lane, rows))
                shutil.rmtree(work / lane, ignore_errors=True)
    idle = _idle_flows(settings.ingest_flows, work / "idle")
    shutil.rmtree(work, ignore_errors=True)
    return {"machine": told, "rows": rows, "lanes": found, "flows": settings.ingest_flows, "idle": idle}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each act."""
    lanes, rows = result["lanes"], result["rows"]

    def cells(act: str, ours: str, others: str = "") -> list[str]:
        own = [figures[act] for figures in lanes[ours]]
        peer = [figures[act] for figures in lanes[others]] if others else []
        ratio = f"{min(peer) / min(own):.2f}x" if peer else ""
        return [seconds_text(own), seconds_text(peer) if peer else "", ratio]

    body = [
        [f"Kafka → table, {rows:,} JSON messages of 1 kB", *cells("all", "kafka-hoodie", "kafka-spark")],
        [f"the same in process, batches of {_in_process_limit(rows):,}", *cells("all", "kafka-in-process")],
        [f"a batch of {_SMALL:,} messages, warm, Spark", *cells("small", "kafka-hoodie")],
        [f"a batch of {_SMALL:,} messages, warm, in process", *cells("small", "kafka-in-process")],
        [f"JDBC → table, {rows:,} rows", *cells("all", "jdbc-hoodie", "jdbc-spark")],
    ]
    title = (
        "Seconds with `hoodie.ingest` (upsert by the record index, partitioned, with statistics), and with Spark's own "
        f"read and partitioned Parquet write; {machine_line(result['machine'])}"
    )
    idle = f"An idle flow takes {result['idle']:.2f} CPU seconds an hour ({result['flows']} flows in one process)."
    return "\n".join([title, "", table(["act", "hoodie", "Spark alone", "ratio"], body), "", idle, ""])


def _in_process_limit(rows: int) -> int:
    return max(1, min(rows, 100_000))


def _message(number: int) -> bytes:
    row = {"id": f"k{number:09}", "ts": number, "fare": number / 8, "city": f"c{number % _CITIES:02}", "note": ""}
    row["note"] = "x" * (_MESSAGE_BYTES - len(json.dumps(row)))
    return json.dumps(row).encode()


def _fill_topic(broker: Broker, topic: str, numbers: range) -> None:
    broker.create_topic(topic, _PARTITIONS)
    broker.create_topic("small", _PARTITIONS)
    _send(broker.producer(), topic, numbers)


def _send(producer: Any, topic: str, numbers: range) -> None:
    for number in numbers:
        while True:
            try:
                producer.produce(topic, _message(number), partition=number % _PARTITIONS)
                break
            except BufferError:
                producer.poll(0.5)
    producer.flush()


def _fill_table(server: Postgres, rows: int) -> None:
    server.execute(
        "CREATE TABLE trips AS SELECT 'k' || lpad(n::text, 9, '0') AS id, n::bigint AS ts, n / 8.0::double precision "
        f"AS fare, 'c' || lpad((n % {_CITIES})::text, 2, '0') AS city, repeat('x', 900) AS note "
        f"FROM generate_series(0, {rows - 1}) AS n; CREATE INDEX ON trips (ts); ANALYZE trips"
    )


def _idle_flows(count: int, folder: Path) -> float:
    """Return the CPU seconds per hour of one flow that finds nothing new in its folder, once a second."""
    (folder / "landing").mkdir(parents=True)
    source = source_of({"kind": "files", "path": str(folder / "landing"), "format": "json"})
    target = hoodie.create(folder / "to", _SCHEMA, record_key="id", spark=False)
    flows = [
        Flow(name=f"flow {number}", source=source, target=Target(path=target.path, table=target), is_named=True)
        for number in range(count)
    ]
    runner = Runner(flows=flows, pace=Pace(continuous=True, interval=60.0))
    stop = _Until(time.monotonic() + _IDLE_SECONDS)
    began = time.process_time()
    runner.run(stop)  # type: ignore[arg-type]
    looks = sum(1 + int(_IDLE_SECONDS // 60) for _ in flows)
    return (time.process_time() - began) / looks * 60


class _Until:
    """An event that is set from a moment on."""

    def __init__(self, end: float) -> None:
        self._end = end

    def is_set(self) -> bool:
        return time.monotonic() >= self._end

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def _session() -> Any:
    from pyspark.sql import SparkSession

    jars = ",".join(str(jar) for jar in Path(os.environ["HOODIE_CONNECTOR_JARS"]).resolve().glob("*.jar"))
    builder = SparkSession.builder.master("local[2]").appName("bench").config("spark.jars", jars)
    for key, value in SESSION.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.range(1000).selectExpr("id", "id % 7 AS k").groupBy("k").count().collect()  # the first job of a session
    return session


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _kafka(spark: Any, servers: str, folder: Path, rows: int) -> dict[str, float]:
    """Read all messages into a new table, then small batches into it, of which the median counts."""
    from confluent_kafka import Producer

    path, source = str(folder), {"kind": "kafka", "servers": servers, "topic": "trips", "format": "json"}
    limit = None if spark else _in_process_limit(rows)

    def all_messages() -> None:
        done = hoodie.ingest(source, path, create=_CREATE, schema=_SCHEMA, spark=spark, limit=limit)
        assert done.inserted == rows, done

    found = {"all": _seconds(all_messages)}
    small = hoodie.create(f"{folder}-small", _SCHEMA, **_CREATE, spark=spark)
    flow = {"kind": "kafka", "servers": servers, "topic": "small", "format": "json"}
    producer, times, first = Producer({"bootstrap.servers": servers}), [], 0
    hoodie.ingest(flow, small, schema=_SCHEMA, spark=spark)  # messages of earlier lanes
    kafka = source_of(flow)
    for _ in range(6):
        _send(producer, "small", range(first, first := first + _SMALL))
        times.append(_seconds(lambda: hoodie.ingest(kafka, small, schema=_SCHEMA, spark=spark, batches_max=1)))
    shutil.rmtree(f"{folder}-small", ignore_errors=True)
    return {**found, "small": sorted(times[1:])[2]}


def _kafka_spark(spark: Any, servers: str, folder: Path) -> dict[str, float]:
    def write() -> None:
        raw = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "trips").load()
        parsed = raw.selectExpr(f"from_json(CAST(value AS string), '{_DDL}') AS row").select("row.*")
        parsed.write.partitionBy("city").parquet(str(folder))

    return {"all": _seconds(write)}


def _jdbc_options(url: str) -> dict[str, str]:
    return {"url": url, "user": "hoodie", "password": PASSWORD}


def _jdbc(spark: Any, url: str, folder: Path, rows: int) -> dict[str, float]:
    source = {"kind": "jdbc", **_jdbc_options(url), "table": "trips", "column": "ts"}
    source |= {"partition_column": "ts", "partitions": 2, "fetch_size": 10_000}

    def write() -> None:
        done = hoodie.ingest(source, str(folder), create=_CREATE, spark=spark)
        assert done.inserted == rows, done

    return {"all": _seconds(write)}


def _jdbc_spark(spark: Any, url: str, folder: Path, rows: int) -> dict[str, float]:
    def write() -> None:
        reader = spark.read.format("jdbc").options(
            **_jdbc_options(url), dbtable="trips", fetchsize="10000", driver=_DRIVER
        )
        bounds = {"partitionColumn": "ts", "lowerBound": "0", "upperBound": str(rows), "numPartitions": "2"}
        reader.options(**bounds).load().write.partitionBy("city").parquet(str(folder))

    return {"all": _seconds(write)}


def main() -> None:
    """Measure one lane."""
    lane, endpoint, folder, rows = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    if lane == "kafka-in-process":
        print_figures(_kafka(False, endpoint, folder, rows))
        return
    spark = _session()
    if lane == "kafka-hoodie":
        figures = _kafka(spark, endpoint, folder, rows)
    elif lane == "kafka-spark":
        figures = _kafka_spark(spark, endpoint, folder)
    elif lane == "jdbc-hoodie":
        figures = _jdbc(spark, endpoint, folder, rows)
    else:
        figures = _jdbc_spark(spark, endpoint, folder, rows)
    print_figures(figures)
    spark.stop()


if __name__ == "__main__":
    main()
