"""A snapshot of a table as a relation of DuckDB, which reads plain files itself and gets other rows from us."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa

from hoodie.read.dataset import Snapshot, TableDataset
from hoodie.read.native_scan import FILES_MAX, NativeFiles, Stored, is_local, native_files


def relation(con: Any, snapshot: Snapshot) -> duckdb.DuckDBPyRelation:
    """Return the rows as a relation of a connection, or of the module `duckdb`.

    DuckDB reads the files of local tables that it reads as we do, if the connection allows it; it hands the columns and
    filters of a query to the dataset of the other slices. Without a filter to prune by, it opens each file in each
    query: if these are many, the dataset has all slices.

    Raises: as `plan_scan` and `native_files`; `duckdb.ConnectionException` for a closed connection.
    """
    ours: duckdb.DuckDBPyRelation = con.from_arrow(TableDataset(snapshot))
    if not is_local(snapshot.view.store.spec):
        # DuckDB needs an extension for object stores, and a secret in the caller's connection.
        return ours
    plan = snapshot.planned()
    if not 0 < len(plan.files) <= FILES_MAX:
        return ours
    read: list[NativeFiles] = []
    parts: list[duckdb.DuckDBPyRelation] = []
    for group in native_files(plan, plan.schema):
        part = _part(con, group, ours)
        if part is not None:
            read.append(group)
            parts.append(part)
    if not read:
        return ours
    files = [file for group in read for file in group.files]
    if len(files) < len(plan.slices):
        # DuckDB begins with the first part. Our threads merge logs while its threads read the files.
        parts.insert(0, con.from_arrow(TableDataset(replace(snapshot, left_out=frozenset(files)))))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


def _part(con: Any, group: NativeFiles, ours: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation | None:
    """Return the rows of files with the columns and types of our relation; None if DuckDB does not read them so."""
    try:
        part: duckdb.DuckDBPyRelation = con.read_parquet(list(group.uris), hive_partitioning=False)
        if tuple(part.columns) != group.names:
            return None  # DuckDB renames columns that differ in case only.
        if not group.are_as_the_scan:
            pairs = zip(group.columns, ours.types, strict=True)
            part = part.project(", ".join(_column(child, stored, kind) for (child, stored), kind in pairs))
    except duckdb.Error:
        return None  # The connection may not read files, or DuckDB does not know a type.
    return part if (part.columns, part.types) == (ours.columns, ours.types) else None


def _column(child: pa.Field, stored: Stored, kind: Any) -> str:
    name = '"' + child.name.replace('"', '""') + '"'
    return name if stored is Stored.SAME else f"CAST({'NULL' if stored is Stored.ABSENT else name} AS {kind}) AS {name}"
