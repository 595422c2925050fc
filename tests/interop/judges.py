"""The two independent judges of the format: JVM Hudi (1.2.0, or an older release) on PySpark 3.5, and hudi-rs.

`Jvm` writes and reads with the reference; `read_with_hudi_rs` reads with the other one. Comparison of rows is in
tests/support/rows.py, of locations here: our record index, the JVM's look-up in it, and where the data files have the
keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from hoodie.format.filenames import BaseFileName
from hoodie.index.record.state import record_index
from hoodie.timeline.instant import Action, Instant, State
from tests.support.index_check import Locations, indexed
from tests.support.rows import META_COLUMNS, assert_same_rows
from tests.support.sessions import STATIC_CONFS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JVM_CONFS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    # Without these Spark refuses days before 1582 and times before 1900, in the JVM's own tables too.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # The bloom index of the metadata table has Kryo look into locks, which Java 17 allows nobody unasked.
    "spark.driver.extraJavaOptions": (
        f"{STATIC_CONFS['spark.driver.extraJavaOptions']} --add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED"
    ),
}

# What makes a small commit quick; a test that is about one of these passes its own value.
QUICK_OPTIONS = {
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.simple.index.parallelism": "2",
    "hoodie.global.simple.index.parallelism": "2",
    "hoodie.global.index.reconcile.parallelism": "2",
}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
NEWEST_TABLE_VERSION = {"1.2.0": 9, "1.0.2": 8, "0.15.0": 6}
"""The newest table version that each release of the JVM writes."""
SKIPPING = {"hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}


@dataclass(frozen=True)
class KeyedRead:
    """Rows of a query, and how many files were read for it."""

    rows: list[dict[str, Any]]
    files: int


class Jvm:
    """JVM Hudi in a Spark session. Tables are addressed by their base path."""

    def __init__(self, spark: SparkSession, *, scratch: Path, release: str = "1.2.0") -> None:
        self.spark = spark
        self.release = release
        self._scratch = scratch
        self._numbers = count()

    def write(
        self,
        data: pa.Table | DataFrame,
        path: str | Path,
        *,
        table_name: str,
        key: str | Sequence[str] | None,
        partition: str | Sequence[str] = (),
        ordering: str | Sequence[str] | None = None,
        operation: str = "upsert",
        table_type: str = "COPY_ON_WRITE",
        table_version: int | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        """Commit `data` with the DataFrame writer; creates the table where there is none.

        `key=None` lets the JVM make automatic keys. No `table_version` is the newest one of the release. `options` are
        `hoodie.*` keys, and win over all others.
        """
        newest = NEWEST_TABLE_VERSION[self.release]
        table_version = newest if table_version is None else table_version
        settings = {
            **QUICK_OPTIONS,
            "hoodie.table.name": table_name,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.partitionpath.field": _comma_list(partition),
            "hoodie.write.table.version": str(table_version),
        }
        if key is not None:
            settings["hoodie.datasource.write.recordkey.field"] = _comma_list(key)
        if ordering is not None:
            settings["hoodie.datasource.write.precombine.field"] = _comma_list(ordering)
        if table_version != newest:
            settings["hoodie.write.auto.upgrade"] = "false"
        frame = self.frame(data) if isinstance(data, pa.Table) else data
        writer = frame.write.format("hudi").options(**{**settings, **(options or {})})
        writer.mode("append").save(str(path))

    def write_trips(self, data: pa.Table | DataFrame, path: str | Path, **named: Any) -> None:
        """`write` to a table with the key `id`, the partition column `city` and the ordering column `ts`."""
        self.write(data, path, table_name="trips", key="id", partition="city", ordering="ts", **named)

    def read(
        self, path: str | Path, columns: Sequence[str] | None = None, *, options: dict[str, str] | None = None
    ) -> pa.Table:
        """Snapshot of the table (or what `options` ask for), rows in no particular order."""
        frame = self.spark.read.format("hudi").options(**(options or {})).load(str(path))
        return to_arrow(frame if columns is None else frame.select(*columns))

    def read_incremental(self, path: str | Path, begin: str, end: str | None = None) -> pa.Table:
        """Latest state of the rows committed in `(begin, end]`; version 8 and later compare completion times."""
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
        if end is not None:
            options["hoodie.datasource.read.end.instanttime"] = end
        return self.read(path, options=options)

    def read_optimized(self, path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows of the newest base files; what log files say is left out."""
        return self.read(path, columns, options={"hoodie.datasource.query.type": "read_optimized"})

    def sql(self, statement: str) -> pa.Table:
        """Result of a Spark SQL statement, `CALL` procedures included."""
        return to_arrow(self.spark.sql(statement))

    @contextmanager
    def configured(self, confs: Mapping[str, str]) -> Iterator[Jvm]:
        """Set options of the session for a while."""
        before = {key: self.spark.conf.get(key, None) for key in confs}
        for key, value in confs.items():
            self.spark.conf.set(key, value)
        try:
            yield self
        finally:
            for key, old in before.items():
                self.spark.conf.unset(key) if old is None else self.spark.conf.set(key, old)

    @contextmanager
    def named(self, path: str | Path) -> Iterator[str]:
        """Give the table a name in the catalog for a while; its files stay."""
        name = f"judged_{next(self._numbers)}"
        self.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
        try:
            yield name
        finally:
            self.spark.sql(f"DROP TABLE {name}")

    def compact(self, path: str | Path, operation: str = "scheduleAndExecute") -> list[str]:
        """Compact log files, due or not; `schedule` and `run` are halves of that. Instants of the compactions."""
        options = {**QUICK_OPTIONS, "hoodie.compact.inline.max.delta.commits": "1"}
        text = ",".join(f"{key}={value}" for key, value in options.items())
        done = self.sql(f"CALL run_compaction(op => '{operation}', path => '{path}', options => '{text}')")
        instants: list[str] = done["timestamp"].to_pylist()
        return instants

    def write_client(self, path: str | Path, table_name: str, options: Mapping[str, str]) -> Any:
        """A write client of the JVM with these options and the quick ones; the caller closes it."""
        java: Any = self.spark._jvm
        java_options = java.java.util.HashMap()
        for key, value in {**QUICK_OPTIONS, **options}.items():
            java_options.put(key, value)
        create = java.org.apache.hudi.DataSourceUtils.createHoodieClient
        return create(self.spark._jsc, "", str(path), table_name, java_options)

    def rollback(self, path: str | Path, instant_time: str, *, table_name: str, table_version: int) -> None:
        """Take back a completed write of a merge-on-read table."""
        options = {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.write.table.version": str(table_version),
            "hoodie.write.auto.upgrade": "false",
            # A write that has completed left no markers.
            "hoodie.rollback.using.markers": "false",
        }
        client = self.write_client(path, table_name, options)
        try:
            assert client.rollback(instant_time)
        finally:
            client.close()

    def locations(self, path: str | Path, keys: Collection[str]) -> Locations:
        """Where the JVM's own look-up in the record index finds keys; those it does not find are left out."""
        java, hudi = self.spark._jvm.java.util, self.spark._jvm.org.apache.hudi  # type: ignore[union-attr]
        client = self.meta_client(path)
        config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        engine = hudi.common.engine.HoodieLocalEngineContext(client.getStorageConf())
        metadata = hudi.metadata.HoodieBackedTableMetadata(engine, client.getStorage(), config, str(path), False)
        wanted = hudi.common.data.HoodieListData.eager(java.ArrayList(sorted(keys)))
        found = metadata.readRecordIndexLocationsWithKeys(wanted).collectAsList()
        metadata.close()
        return {pair.getKey(): (pair.getValue().getPartitionPath(), pair.getValue().getFileId()) for pair in found}

    def read_by_key(self, path: str | Path, keys: Collection[str], *, column: str = "id") -> KeyedRead:
        """Rows with these keys, by a query that may use the record index to leave files out."""
        frame = self.spark.read.format("hudi").options(**SKIPPING).load(str(path))
        return _scanned(frame.where(frame[column].isin(*keys)))

    def read_where(self, path: str | Path, where: str, *, skips: bool) -> KeyedRead:
        """Rows that match a condition, by a query that may use statistics to leave files out, or one that may not."""
        options = {**SKIPPING, "hoodie.enable.data.skipping": str(skips).lower()}
        return _scanned(self.spark.read.format("hudi").options(**options).load(str(path)).where(where))

    def ids_where(self, path: str | Path, conditions: Sequence[str], *, skips: bool) -> dict[str, list[str]]:
        """The ids of the rows that match each condition, sorted, read in one job; `skips` as in `read_where`."""
        # Incremental JVM reads leave these in the session. Parquet's filter of records then loses -0.0 of `f = 0`.
        for left_over in ("spark.sql.parquet.recordLevelFilter.enabled", "spark.sql.parquet.enableVectorizedReader"):
            self.spark.conf.unset(left_over)
        options = {**SKIPPING, "hoodie.enable.data.skipping": str(skips).lower()}
        reader = self.spark.read.format("hudi").options(**options)
        frames = [
            reader.load(str(path)).where(where).selectExpr(f"{number} AS n", "id")
            for number, where in enumerate(conditions)
        ]
        found: dict[str, list[str]] = {where: [] for where in conditions}
        for row in sorted(reduce(lambda left, right: left.union(right), frames).collect()):
            found[conditions[row.n]].append(row.id)
        return found

    def timeline(self, path: str | Path) -> list[Instant]:
        """The active timeline as the JVM sees it, oldest first."""
        java_timeline = self.meta_client(path).getActiveTimeline()
        return [
            Instant(
                requested_time=instant.requestedTime(),
                action=Action(instant.getAction()),
                state=State[instant.getState().name()],
                completion_time=instant.getCompletionTime(),
            )
            for instant in java_timeline.getInstants()
        ]

    def meta_client(self, path: str | Path) -> Any:
        """A fresh `HoodieTableMetaClient`, the JVM's view of the table's properties and timeline."""
        hudi = self.spark._jvm.org.apache.hudi  # type: ignore[union-attr]
        hadoop_conf = self.spark._jsc.hadoopConfiguration()
        builder = hudi.common.table.HoodieTableMetaClient.builder()
        storage_conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(hadoop_conf)
        return builder.setConf(storage_conf).setBasePath(str(path)).build()

    def frame(self, table: pa.Table) -> DataFrame:
        """The Arrow table as a DataFrame, types kept (PySpark 3.5 has no way in but through pandas or a file)."""
        file = self._scratch / f"input-{next(self._numbers)}.parquet"
        pq.write_table(table, file)
        return self.spark.read.parquet(str(file))


def create_trips(path: str | Path, schema: pa.Schema, **options: Any) -> hoodie.Table:
    """Create a table of ours with the key `id`, the partition column `city` and the ordering column `ts`."""
    return hoodie.create(path, schema, record_key="id", partition_by="city", ordering="ts", name="trips", **options)


def to_arrow(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame as Arrow, on PySpark 3.5 too."""
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()  # type: ignore[operator]
    return pa.Table.from_batches(batches) if batches else to_arrow_schema(frame.schema).empty_table()


def read_with_hudi_rs(path: str | Path) -> pa.Table:
    """Snapshot of the table as hudi-rs reads it."""
    from hudi import HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(str(path)).build()
    return pa.Table.from_batches([pa.record_batch(batch) for batch in table.read()])


def assert_all_read(jvm: Jvm, path: Path, expected: pa.Table, spark: Any = False) -> None:
    """Check that we, the JVM with and without its metadata table, and hudi-rs read these rows of the key `id`."""
    names = expected.column_names
    assert_same_rows(hoodie.open(path, spark=spark).to_arrow(names), expected, key="id")
    for metadata in ("true", "false"):
        read = jvm.read(path, names, options={"hoodie.metadata.enable": metadata})
        assert_same_rows(read, expected, key="id")
    assert_same_rows(read_with_hudi_rs(path).select(names), expected, key="id")


def read_by_all(jvm: Jvm, table: hoodie.Table, *, has_index: bool = True) -> pa.Table:
    """Return the rows of a table of ours with their meta columns.

    Before, check that all judges read the same, and that the record index has the files of the rows.
    """
    rows = table.to_arrow()
    for metadata in ("true", "false"):
        assert_same_rows(jvm.read(table.path, options={"hoodie.metadata.enable": metadata}), rows, meta=True)
    assert_same_rows(read_with_hudi_rs(table.path), rows, meta=True)
    if has_index:
        assert_index_is_data(jvm, table.path, rows=rows)
    return rows


def assert_read_alike(jvm: Jvm, path: Path, as_of: str | None = None) -> pa.Table:
    """Check that our rows, in process and by Spark, are those of the JVM, and return these."""
    expected = jvm.read(path, options={} if as_of is None else {"as.of.instant": as_of})
    names = [name for name in expected.column_names if name not in META_COLUMNS]
    in_process = hoodie.open(path, spark=False).to_arrow(as_of=as_of)
    assert {*in_process.column_names} - {*META_COLUMNS} == {*names}
    assert_same_rows(in_process, expected.select(names))
    frame = hoodie.open(path, spark=jvm.spark).read(columns=names, as_of=as_of)
    assert_same_rows(to_arrow(frame), expected.select(names))
    return expected


def assert_index_is_data(
    jvm: Jvm, path: str | Path, *, rows: pa.Table | None = None, gone: Collection[str] = ()
) -> Locations:
    """Check that the record index holds each key where its row lies, and no other key, as we and as the JVM see it.

    The data are the `rows` as the JVM reads them (read here if not given), one for each key. `gone` are keys that
    nobody may find. Gives the locations.
    """
    view = hoodie.open(path).view()
    state = record_index(view)
    assert state is not None, "the table has no record index"
    places = (rows or jvm.read(path)).select(["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"])
    data: Locations = {}
    for key, partition, file_name in zip(*places.to_pydict().values(), strict=True):
        assert key not in data, f"key {key!r} has more than one row"
        parsed = BaseFileName.parse(file_name)
        # Rows of log files name their file group only.
        data[key] = (partition, file_name if parsed is None else parsed.file_id)
    assert not data.keys() & set(gone)
    _assert_same_locations("our index", indexed(view.store, state), data)
    _assert_same_locations("the JVM's look-up", jvm.locations(path, {*data, *gone}), data)
    return data


def _assert_same_locations(whose: str, actual: Mapping[str, object], expected: Mapping[str, object]) -> None:
    keys = sorted(key for key in actual.keys() | expected.keys() if actual.get(key) != expected.get(key))
    lines = [f"{key!r}: {actual.get(key)}, the row lies in {expected.get(key)}" for key in keys[:10]]
    assert not keys, f"{whose} has {len(keys)} keys of {len(expected)} elsewhere:\n  " + "\n  ".join(lines)


def _scanned(frame: DataFrame) -> KeyedRead:
    rows = frame.collect()
    (scan,) = _scans(frame._jdf.queryExecution().executedPlan())
    return KeyedRead([row.asDict(recursive=True) for row in rows], scan.metrics().get("numFiles").get().value())


def _scans(plan: Any) -> list[Any]:
    leaves = plan.collectLeaves()
    return [leaf for leaf in map(leaves.apply, range(leaves.size())) if leaf.metrics().contains("numFiles")]


def _comma_list(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)
