"""Reads through Spark's own Parquet scan: files and schema from the table, everything else is Spark's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hoodie.files.base_file import open_parquet
from hoodie.files.slices import BaseFile
from hoodie.format.commit_metadata import SCHEMA_KEY
from hoodie.format.table_schema import avro_to_arrow, with_meta_fields
from hoodie.metadata.view import TableView
from hoodie.read.local import COMMIT_TIME
from hoodie.read.plan import ScanPlan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.spark.types import spark_schema_of

_GLOB_CHARACTERS = set("\\{}[]*?")
_KEYS_IN_CONDITION = 1000


def read_scan(session: Any, plan: ScanPlan) -> Any:
    """The scan as a DataFrame: columns and conditions are pushed into Parquet, and the plan has no Python in it."""
    frame = _files(session, plan)
    if plan.instants is not None:
        frame = frame.where(F.col(COMMIT_TIME).isin(sorted(plan.instants)))
    if plan.where is not None:
        frame = frame.where(plan.where)
    if plan.keys is not None:
        frame = _with_keys(session, frame, plan.keys)
    return (
        frame if plan.columns == tuple(plan.schema.names) else frame.select(*(_quoted(name) for name in plan.columns))
    )


def _files(session: Any, plan: ScanPlan) -> Any:
    schema = spark_schema_of(plan.schema)
    if not plan.files:
        return session.createDataFrame([], schema)
    if widens_integers(session):
        return _scan(session, plan, plan.files, schema)
    parts = [
        _scan(session, plan, files, spark_schema_of(stored)).to(schema) for stored, files in _by_stored_types(plan)
    ]
    frame = parts[0]
    for part in parts[1:]:
        frame = frame.unionByName(part)
    return frame


def _scan(session: Any, plan: ScanPlan, files: Iterable[BaseFile], schema: Any) -> Any:
    paths = [_literal_path(plan.view.store.uri(file.path)) for file in files]
    reader = session.read.schema(schema).option("recursiveFileLookup", "true")
    # Hudi writes days and times of the proleptic calendar; without this Spark refuses those before 1582 and 1900.
    return reader.option("datetimeRebaseMode", "CORRECTED").parquet(*paths)


def _literal_path(path: str) -> str:
    """A path that Spark's globbing leaves as it is."""
    return "".join(f"\\{char}" if char in _GLOB_CHARACTERS else char for char in path)


def _quoted(name: str) -> str:
    return f"`{name}`"


def widens_integers(session: Any) -> bool:
    """Whether Spark's Parquet scan reads an int file column as long, and float as double: from 4.0 on."""
    return int(session.version.partition(".")[0]) >= 4


def _by_stored_types(plan: ScanPlan) -> list[tuple[pa.Schema, list[BaseFile]]]:
    """Files by the table schema at the time they were written, columns in today's order.

    Spark 3.5 refuses to read an int column as long, so files from before a widening are scanned with their own types.
    """
    groups: dict[pa.Schema, list[BaseFile]] = {}
    known: dict[str, pa.Schema] = {}
    for file in plan.files:
        if file.instant_time not in known:
            known[file.instant_time] = _schema_at(plan.view, plan.schema, file)
        groups.setdefault(known[file.instant_time], []).append(file)
    return list(groups.items())


def _schema_at(view: TableView, current: pa.Schema, file: BaseFile) -> pa.Schema:
    """Today's columns with the types they had when the file was written; from its footer if its commit is archived."""
    instant = view.timeline.get(file.instant_time)
    text = view.commit_metadata(instant).extra_metadata.get(SCHEMA_KEY) if instant and instant.is_completed else None
    if text:
        stored = with_meta_fields(avro_to_arrow(text))
    else:
        with open_parquet(view.store, file.path) as parquet:
            stored = parquet.schema_arrow
    fields = [
        field.with_type(stored.field(field.name).type)
        if field.name in stored.names and _is_narrower(stored.field(field.name).type, field.type)
        else field
        for field in current
    ]
    return pa.schema(fields)


def _is_narrower(stored: pa.DataType, current: pa.DataType) -> bool:
    """Whether a number column was widened since, at the top level."""
    numbers = pa.types.is_integer(stored) or pa.types.is_floating(stored)
    return bool(numbers and stored != current and pa.types.is_primitive(current))


def _with_keys(session: Any, frame: Any, keys: pa.Table) -> Any:
    """Rows with one of the keys: by a condition that Parquet's statistics can use, or by a join if there are many."""
    distinct = keys.group_by(keys.column_names).aggregate([])
    if keys.num_rows <= _KEYS_IN_CONDITION:
        frame = frame.where(F.col(RECORD_KEY).isin(distinct[RECORD_KEY].unique().to_pylist()))
        if PARTITION_PATH not in keys.column_names:
            return frame
    wanted = session.createDataFrame(distinct.to_pandas())
    return frame.join(F.broadcast(wanted), keys.column_names, "left_semi").select(*(_quoted(n) for n in frame.columns))
