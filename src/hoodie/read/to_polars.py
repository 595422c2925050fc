"""A snapshot of a table as a LazyFrame of Polars, which hands over columns, its filter and a number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from polars.io.plugins import register_io_source
from pyarrow.compute import Expression

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.read.dataset import Snapshot
from hoodie.read.local import SliceScan, read_batches
from hoodie.read.native_scan import FILES_MAX, NativeFiles, Stored, is_local, native_files, reader_options
from hoodie.read.plan import ScanPlan


def lazy_frame(snapshot: Snapshot) -> pl.LazyFrame:
    """Return the rows as a frame.

    If Polars may read all files of a local table, and they are few, the frame is a scan of them. Otherwise we first
    prune by the filter of each query; then Polars reads the files that it may read, and gets the other rows in batches.
    """
    plan = snapshot.planned() if is_local(snapshot.view.store.spec) else None
    if plan is None or not 0 < len(plan.files) <= FILES_MAX:
        return _pruned(snapshot)
    if any(found.log_files for found in plan.slices):
        return _pruned(snapshot)
    scans = _scans(plan, snapshot.schema)
    if sum(len(group.files) for group, _ in scans) < len(plan.slices):
        return _pruned(snapshot)
    return pl.concat([scan for _, scan in scans])


def _pruned(snapshot: Snapshot) -> pl.LazyFrame:
    """Return the rows as a frame that plans each query anew."""
    return register_io_source(partial(_rows, snapshot), schema=_polars_schema(snapshot.schema), is_pure=True)


def _polars_schema(schema: pa.Schema) -> pl.Schema:
    empty: Any = pl.from_arrow(schema.empty_table())
    return pl.Schema(empty.schema)


def _scans(plan: ScanPlan, schema: pa.Schema) -> list[tuple[NativeFiles, pl.LazyFrame]]:
    """Return the files that Polars reads as we do, with a scan of each form of them; the scan has this schema."""
    options = reader_options(plan.view.store.spec)
    if options is None:
        return []
    expected = _polars_schema(schema)
    # Without options, Polars looks for credentials in places of its own.
    given: dict[str, Any] = {"storage_options": options, "credential_provider": None} if options else {}
    found = []
    for files in native_files(plan, schema):
        with suppress(
            pl.exceptions.PolarsError, OSError
        ):  # A type that Polars does not know, or a store it cannot use.
            scan = pl.scan_parquet(list(files.uris), glob=False, hive_partitioning=False, **given)
            if tuple(scan.collect_schema().names()) != files.names:
                continue
            if not files.are_as_the_scan:
                scan = scan.select([_column(child.name, stored, expected) for child, stored in files.columns])
            if scan.collect_schema() == expected:
                found.append((files, scan))
    return found


def _column(name: str, stored: Stored, schema: pl.Schema) -> pl.Expr:
    if stored is Stored.ABSENT:
        return pl.lit(None, dtype=schema[name]).alias(name)
    return pl.col(name) if stored is Stored.SAME else pl.col(name).cast(schema[name])


def _rows(
    snapshot: Snapshot,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows_max: int | None,
    batch_rows: int | None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows that match. `rows_max` counts rows before the predicate."""
    wanted = list(snapshot.schema.names if columns is None else columns)
    compared = [] if predicate is None else predicate.meta.root_names()
    needed = list(dict.fromkeys([*wanted, *compared])) or snapshot.schema.names[:1]
    if rows_max is None:
        # Polars orders NaN, and pyarrow does not: what pyarrow understands of the predicate chooses files only.
        plan = snapshot.planned(None if predicate is None else _in_arrow(predicate, snapshot.schema), needed)
        for rows in _matching(plan, needed, predicate, batch_rows):
            yield rows.select(wanted)
        return
    left = rows_max
    for rows in _matching(snapshot.planned(None, needed), needed, None, batch_rows):
        kept = rows.head(left)
        left -= kept.height
        yield (kept if predicate is None else kept.filter(predicate)).select(wanted)
        if left == 0:
            return


def _matching(
    plan: ScanPlan, columns: Sequence[str], predicate: pl.Expr | None, batch_rows: int | None
) -> Iterator[pl.DataFrame]:
    """Yield these columns of the rows that match, from the files that Polars reads, then from the other slices."""
    schema = pa.schema([plan.schema.field(name) for name in columns])
    read: set[BaseFile] = set()
    for files, scan in _scans(plan, schema) if hasattr(pl.LazyFrame, "collect_batches") else ():
        if all(stored is Stored.ABSENT for _, stored in files.columns):
            continue  # A scan without columns has no number of rows.
        read.update(files.files)
        yield from _scanned(plan, files, scan if predicate is None else scan.filter(predicate), batch_rows)
    slices = tuple(found for found in plan.slices if found.log_files or found.base_file not in read)
    if slices:
        rest = replace(plan, slices=slices)
        scan_rest = replace(SliceScan.of(rest), columns=tuple(columns), exact=None)
        for batch in read_batches(rest, batch_rows, scan=scan_rest):
            rows: Any = pl.from_arrow(batch)
            yield rows if predicate is None else rows.filter(predicate)


def _scanned(plan: ScanPlan, files: NativeFiles, scan: pl.LazyFrame, batch_rows: int | None) -> Iterator[pl.DataFrame]:
    """Yield the rows of a scan. Raises: MissingFileError, CorruptFileError for a file that changed since the plan."""

    def check(file: BaseFile, context: TaskContext) -> None:
        with open_base_file(plan.view.store, file):
            pass

    try:
        yield from scan.collect_batches(chunk_size=batch_rows, maintain_order=False)
    except (pl.exceptions.PolarsError, OSError):
        LocalEngine().run(check, files.files)
        raise


def _in_arrow(predicate: pl.Expr, schema: pa.Schema) -> Expression | None:
    """Return what Polars hands of a predicate to a dataset of pyarrow; None for nothing, or what pyarrow refuses."""
    asked = _Asked(schema)
    pl.scan_pyarrow_dataset(asked).filter(predicate).collect()
    try:
        schema.empty_table().filter(asked.filter)
    except (pa.ArrowException, TypeError):
        return None
    return asked.filter


class _Asked(ds.Dataset):  # type: ignore[misc]
    """A dataset without rows that keeps the filter of a scan."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.filter: Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        return self._schema

    def to_batches(self, filter: Expression | None = None, **_: Any) -> Iterator[pa.RecordBatch]:
        """Keep the filter; there are no batches."""
        self.filter = filter
        return iter(())
