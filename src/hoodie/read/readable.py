"""Refuses tables that this release would read wrongly."""

from __future__ import annotations

from hoodie.errors import UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.view.table_view import TableView


def check_readable(view: TableView, *, by_meta_columns: bool = False) -> None:
    """Refuse a table whose rows are not all in its Parquet base files.

    `by_meta_columns`: the call finds rows by `_hoodie_record_key` or `_hoodie_commit_time`, which tables without
    meta fields do not have.

    Raises: UnsupportedError, saying what is missing and who can read it.
    """
    config = view.config
    missing = {
        "whose data files lack the partition columns": config.drops_partition_columns,
        "that was bootstrapped: part of its columns lie in other files": config.bootstrap_base_path is not None,
        f"with {config.base_file_format} base files": config.base_file_format is not BaseFileFormat.PARQUET,
        "without meta fields by key or by commit": by_meta_columns and not config.populates_meta_fields,
    }
    for what, found in missing.items():
        if found:
            raise UnsupportedError(f"{view.store.uri('')}: this release does not read a table {what}; use JVM Hudi")


def check_formats(view: TableView, slices: list[FileSlice]) -> None:
    """Refuse base files of other formats, which a table may have beside Parquet. Raises: UnsupportedError."""
    for found in slices:
        if found.base_file is not None and not found.base_file.name.endswith(".parquet"):
            raise UnsupportedError(
                f"{view.store.uri(found.base_file.path)}: this release reads Parquet base files only; use JVM Hudi"
            )
