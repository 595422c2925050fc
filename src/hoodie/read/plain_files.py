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
from hoodie.read.plan import ScanPlan

FILES_MAX: Final = 64
"""Of more files, other readers read each footer in each query; our plans leave out whole files without reading them."""
_PATTERN: Final = frozenset("*?[]{}\\")


def plain_files(plan: ScanPlan) -> list[str] | None:
    """Return the paths of the files of a scan of all columns, if other readers may read them; else None.

    They may if the files are local and few, no log file changes their rows, and their columns are those of the table,
    in its order, with its types, and not nested: readers differ in older forms of lists.

    Reads the footer of each file. Raises: MissingFileError, CorruptFileError.
    """
    folder = plan.view.store.spec.uri
    paths = [f"{folder}/{file.path}" for file in plan.files[: FILES_MAX + 1]]
    if plan.merged or not 0 < len(paths) <= FILES_MAX or not folder.startswith("/"):
        return None
    is_nested = any(pa.types.is_nested(child.type) for child in plan.schema)
    if is_nested or any(_PATTERN & set(path) for path in paths):
        return None
    return paths if _all_as_table(plan, plan.files) else None


def _all_as_table(plan: ScanPlan, files: Sequence[BaseFile]) -> bool:
    """Return whether each file has the table's columns."""
    expected = [(child.name, child.type) for child in plan.schema]

    def is_same(file: BaseFile, context: TaskContext) -> bool:
        with open_base_file(plan.view.store, file) as (parquet, _):
            return [(child.name, child.type) for child in parquet.schema_arrow] == expected

    return all(LocalEngine().run(is_same, files))
