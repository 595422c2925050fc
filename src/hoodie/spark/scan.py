"""Reads as DataFrames: Spark's Parquet scan of base files, in a union with the rows that Python workers read from logs.

The Parquet scan gets its files and its schema from the table; Spark does the rest. Rows of base files that logs replace
or delete are left out by `superseded`.

Spark lists each path that a reader is given in a task of its own, after it checked in the driver that the path exists:
10 ms a file on a local disk, and two or three requests a file on an object store. Many files are given as a list with
sizes instead: a folder with a log of Spark's file sink (`_spark_metadata`, in which a streaming query notes the files
it has written) is read without both.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import functions as F

from hoodie.errors import HoodieWarning, InvalidConfigError
from hoodie.files.slices import BaseFile
from hoodie.format.table.table_config import TimelineZone
from hoodie.read.key_holders import FILTERED_KEYS_MAX
from hoodie.read.local import SliceScan
from hoodie.read.plan import COMMIT_TIME, ScanPlan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.sql.quoting import quoted
from hoodie.spark.connectors import access_of
from hoodie.spark.merged import SliceReader, read_merged
from hoodie.spark.small_tables import empty_frame, from_arrow
from hoodie.spark.stored_types import files_by_types, with_stored_types
from hoodie.spark.superseded import Superseding, merged_by_driver, scannable
from hoodie.spark.types import arrow_schema_of, in_schema, spark_schema_of
from hoodie.spark.workers import is_connect
from hoodie.storage.paths import literal_path
from hoodie.storage.scratch import scratch_folder, scratch_output
from hoodie.timeline import ms_of_instant_time

LISTED_FILES_MAX: Final = 32
"""Spark lists up to so many paths in the driver, without a job (`parallelPartitionDiscovery.threshold`)."""
_CONNECT_TASKS_MAX: Final = 256
_LOG_FOLDER: Final = "_spark_metadata"
_LOG_VERSION: Final = "v1"
_IGNORE_LOG: Final = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
_LOG_OPENER: Final = "spark.sql.streaming.checkpointFileManagerClass"
"""The class that opens such a log too; some classes, such as the class for S3, open no local file."""
_LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_SENTINEL: Final = "spark-did-not-read-the-list-of-files.parquet"
_LOSING_ROWS: Final = ("ignoreMissingFiles", "ignoreCorruptFiles")
"""Options of a scan, which replace the settings `spark.sql.files.*` of the session."""
_BROADCAST_KEYS_MAX = 100_000


def read_scan(session: Any, plan: ScanPlan) -> Any:
    """Return the scan as a DataFrame; columns and conditions are pushed down to Parquet.

    Without log files Spark's plan runs no Python. For slices with log files, the driver merges small logs in this call,
    and the DataFrame has the rows that come from logs. Of larger logs Python workers merge the rows when a query runs,
    with all columns that the scan needs: a `select` on the DataFrame does not reduce these columns. Slices whose base
    files Spark cannot scan are merged in Python workers, as are all slices if Spark cannot open the store.
    """
    frame = _rows(session, plan)
    if plan.instants is not None:
        frame = frame.where(F.col(COMMIT_TIME).isin(sorted(plan.instants)))
    if plan.where is not None:
        frame = frame.where(plan.where.text)
    if plan.keys is not None:
        frame = _with_keys(session, frame, plan.keys)
    if plan.paths:
        return frame.select(*(".".join(map(quoted, path)) for path in plan.paths))
    return frame if list(plan.columns) == frame.columns else frame.select(*map(quoted, plan.columns))


def _rows(session: Any, plan: ScanPlan) -> Any:
    """Return all rows that can match, with all columns; if log files are merged, with the needed columns only."""
    today = spark_schema_of(with_stored_types(plan.schema, plan.schema))
    if plan.slices and access_of(session, plan.view.store) is None:
        reader, schema = _reader_of(plan, today)
        return read_merged(session, plan.slices, reader, schema)
    parts = _file_parts(session, plan, plan.files, today)
    if plan.merged:
        parts = _with_merged(session, plan, parts, today)
    if not parts:
        return empty_frame(session, spark_schema_of(plan.schema))
    return functools.reduce(lambda left, right: left.unionByName(right), parts)


def _reader_of(plan: ScanPlan, today: Any) -> tuple[SliceReader, Any]:
    """Return the reader of slices in workers, and the Spark schema of its rows: the columns that the scan needs."""
    few_keys = plan.keys is not None and plan.keys.num_rows <= FILTERED_KEYS_MAX
    scan = SliceScan.roughly(plan, keys=plan.keys if few_keys else None)
    schema = type(today)([today[name] for name in scan.columns])
    return SliceReader(plan.view.store.spec, scan, arrow_schema_of(schema)), schema


def _with_merged(session: Any, plan: ScanPlan, parts: list[Any], today: Any) -> list[Any]:
    """Add the slices that need a merge: scans of their base files, and the rows that Python workers read."""
    reader, schema = _reader_of(plan, today)
    scanned = {found.base_file: found for found in scannable(plan, session) if found.base_file is not None}
    # Slices without a base file are read in the same tasks as the logs of the others.
    by_logs = [found for found in plan.merged if found.base_file is None or found.base_file in scanned]
    whole = [found for found in plan.merged if found.base_file is not None and found.base_file not in scanned]
    by_driver = merged_by_driver(session, plan, by_logs, reader, schema)
    superseding = Superseding(scanned, None if by_driver is None else by_driver.by_file)
    parts = parts + _file_parts(session, plan, tuple(scanned), today, superseding)
    if schema.names != today.names:
        parts = [part.select(*map(quoted, schema.names)) for part in parts]
    if by_driver is not None and by_driver.has_rows:
        # A DataFrame that is kept must not be the result: joined with itself, its columns would be ambiguous.
        parts += [] if by_driver.rows is None else [by_driver.rows if parts else by_driver.rows.toDF(*schema.names)]
    elif by_logs:
        parts.append(read_merged(session, by_logs, replace(reader, only_logged=True), schema))
    if whole:
        parts.append(read_merged(session, whole, reader, schema))
    return parts


def _file_parts(
    session: Any,
    plan: ScanPlan,
    files: Sequence[BaseFile],
    today: Any,
    superseding: Superseding | None = None,
) -> list[Any]:
    """Return Spark's scans of base files: one scan for all files with the same types.

    `superseding`: log files supersede rows of the files.
    """
    groups: dict[str, tuple[Any, list[BaseFile]]] = {}
    for stored, same in files_by_types(plan.view, files, plan.schema):
        types = spark_schema_of(stored)
        groups.setdefault(types.json(), (types, []))[1].extend(same)
    schema = spark_schema_of(plan.schema)
    parts = []
    for types, same in groups.values():
        stored_schema = schema if types == today else types
        if superseding is None:
            part = _scan(session, plan, same, stored_schema)
        else:
            part = superseding.without(
                session, plan, same, functools.partial(_scan, session, plan, same), stored_schema
            )
        parts.append(part if types == today else in_schema(part, today))
    return parts


def _scan(session: Any, plan: ScanPlan, files: Sequence[BaseFile], schema: Any) -> Any:
    store, zone = plan.view.store, plan.view.layout.zone
    access = access_of(session, store)
    assert access is not None
    store.check_links(file.path for file in files)
    listed = [FileOfScan(access.uri_of(file.path), file.size_bytes, _written_ms(file, zone)) for file in files]
    # Hudi writes dates and times of the proleptic Gregorian calendar. Without this option Spark raises an error for
    # dates before 1582 and times before 1900.
    reader = access.reader(session).schema(schema).option("datetimeRebaseMode", "CORRECTED")
    return read_files(session, reader, listed)


def _written_ms(file: BaseFile, zone: TimelineZone) -> int:
    """Return the time at which the file's write began, in milliseconds since the epoch; 0 for the reserved times."""
    try:
        return ms_of_instant_time(file.instant_time, zone)
    except InvalidConfigError:
        return 0


def _with_keys(session: Any, frame: Any, keys: pa.Table) -> Any:
    """Keep the rows with one of the keys: few keys by a condition that Parquet statistics can use, many by a join."""
    if keys.num_rows == 0:
        return frame.limit(0)
    distinct = keys.group_by(keys.column_names).aggregate([])
    if keys.num_rows <= FILTERED_KEYS_MAX:
        frame = frame.where(F.col(RECORD_KEY).isin(distinct[RECORD_KEY].unique().to_pylist()))
        if PARTITION_PATH not in keys.column_names:
            return frame
    wanted = from_arrow(session, distinct)
    if distinct.num_rows <= _BROADCAST_KEYS_MAX:
        wanted = F.broadcast(wanted)
    return frame.join(wanted, keys.column_names, "left_semi").select(*(quoted(n) for n in frame.columns))


@dataclass(frozen=True, slots=True)
class FileOfScan:
    """A file that Spark reads: its URI without percent-encoding, its bytes, and when it was written."""

    uri: str
    size_bytes: int
    written_ms: int


def read_files(session: Any, reader: Any, files: Sequence[FileOfScan]) -> Any:
    """Return the rows of Parquet files as a DataFrame; `reader` has the schema and the options.

    Of more than 32 files a session of this process gets a list, in a temporary folder that is deleted at once. The
    sizes must be exact. Spark Connect resolves the paths when a query runs, maybe on another machine: it lists them.

    A file that is missing or damaged ends the query, whatever the settings of the session are: a write that is computed
    from the other rows would lose data.
    """
    reader = reader.option("recursiveFileLookup", "true")
    for name in _LOSING_ROWS:
        reader = reader.option(name, "false")
    if len(files) <= LISTED_FILES_MAX or is_connect(session) or not _reads_logs(session):
        if is_connect(session):
            _warn_of_tasks(session, len(files))
        return reader.parquet(*(literal_path(file.uri) for file in files))
    with scratch_folder() as folder:
        # A Spark without such a log finds this file, and raises an error: without it, the table would seem empty.
        with scratch_output(f"{folder}/{_SENTINEL}") as sentinel:
            sentinel.write(_SENTINEL.encode())
        with scratch_output(f"{folder}/{_LOG_FOLDER}/0") as log:
            log.write(_LOG_VERSION.encode())
            for file in files:
                log.write(_entry(file))
        return reader.parquet(f"file://{folder}")


def _reads_logs(session: Any) -> bool:
    """Return whether Spark reads a log of its file sink in a local folder."""
    return session.conf.get(_IGNORE_LOG, "false") != "true" and not session.conf.get(_LOG_OPENER, None)


def _entry(file: FileOfScan) -> bytes:
    """Return a line of the log: a file that was added."""
    scheme, _, path = file.uri.partition("://")
    entry = {
        "path": f"{scheme}://{quote(path)}",
        "size": file.size_bytes,
        "isDir": False,
        "modificationTime": file.written_ms,
        "blockReplication": 1,
        "blockSize": file.size_bytes,
        "action": "add",
    }
    return b"\n" + json.dumps(entry).encode()


def _warn_of_tasks(session: Any, count: int) -> None:
    tasks = min(count, int(session.conf.get(_LISTING_TASKS)))
    if tasks > _CONNECT_TASKS_MAX:
        warnings.warn(
            f"Spark Connect lists the {count} files of this read in {tasks} tasks each time a query runs; fewer tasks "
            f"are faster: session.conf.set({_LISTING_TASKS!r}, 8)",
            HoodieWarning,
            stacklevel=2,
        )
