"""Base files that any Parquet reader reads as the table means them, so that DuckDB and Polars read them on their own.

Their readers are two to five times as fast as batches that are handed to them. They do not compare checksums of pages,
as other reads in this process do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.read.plan import ScanPlan, plan_scan, scan_schema
from hoodie.read.times import When
from hoodie.view.table_view import TableView

FILES_MAX: Final = 64
"""Of more files, other readers read each footer in each query; our plans leave out whole files without reading them."""
_PATTERN: Final = frozenset("*?[]{}\\")


def plain_files(view: TableView, *, as_of: When | None, kind: str) -> list[str] | None:
    """Return the paths of the files of a snapshot, as for `plan_scan`, if other readers may read them; else None.

    They may if the files are local and few, no log file changes their rows, and their columns are those of the table,
    in its order, with its types, and not nested: readers differ in older forms of lists.

    Lists the files of a local table without nested columns, and reads the footer of each, if they are few. Raises: as
    `plan_scan`; MissingFileError, CorruptFileError.
    """
    folder = view.store.spec.uri
    schema = scan_schema(view, as_of=as_of, kind=kind)
    if not folder.startswith("/") or any(pa.types.is_nested(child.type) for child in schema):
        return None
    plan = plan_scan(view, as_of=as_of, kind=kind)
    if plan.merged or not 0 < len(plan.slices) <= FILES_MAX:
        return None
    paths = [f"{folder}/{file.path}" for file in plan.files]
    if any(_PATTERN & set(path) for path in paths):
        return None
    return paths if _all_as_table(plan, plan.files) else None


def _all_as_table(plan: ScanPlan, files: Sequence[BaseFile]) -> bool:
    """Return whether each file has the table's columns."""
    expected = [(child.name, child.type) for child in plan.schema]

    def is_same(file: BaseFile, context: TaskContext) -> bool:
        with open_base_file(plan.view.store, file) as (parquet, _):
            return [(child.name, child.type) for child in parquet.schema_arrow] == expected

    return all(LocalEngine().run(is_same, files))
