"""Refuse tables that this release would read incorrectly."""

from __future__ import annotations

from hoodie.errors import UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.view.table_view import TableView


def check_readable(view: TableView, *, by_meta_columns: bool = False) -> None:
    """Refuse a table whose data is not completely in its own Parquet base files and log files.

    `by_meta_columns`: the read finds rows by `_hoodie_record_key` or `_hoodie_commit_time`. A table without meta fields
    does not have these columns.

    Raises: UnsupportedError. The message names the missing part and the engine that can read the table.
    """
    config = view.config
    missing = {
        f"with {config.base_file_format} base files": config.base_file_format is not BaseFileFormat.PARQUET,
        "without meta fields by key or by commit": by_meta_columns and not config.populates_meta_fields,
    }
    for what, found in missing.items():
        if found:
            raise UnsupportedError(f"{view.store.uri('')}: this release does not read a table {what}; use JVM Hudi")


def check_formats(view: TableView, slices: list[FileSlice]) -> None:
    """Refuse slices with base files in other formats than Parquet; one table can have several formats.

    Raises: UnsupportedError.
    """
    for found in slices:
        if found.base_file is not None and not found.base_file.name.endswith(".parquet"):
            raise UnsupportedError(
                f"{view.store.uri(found.base_file.path)}: this release reads Parquet base files only; use JVM Hudi"
            )
