"""Which tables this release changes: by their version, and by the features of their data files."""

from __future__ import annotations

from hoodie.errors import UnsupportedError
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.view.table_view import TableView


def check_version_written(view: TableView, verb: str) -> None:
    """Refuse a table of a version that this release only reads. `verb` is what was asked for: `clean`, `archive`, ….

    Raises: UnsupportedError.
    """
    version = view.config.version
    if not version.is_written:
        raise UnsupportedError(
            f"{view.store.uri('')} has table version {version.value}; this release writes version 9 only and never "
            f"upgrades a table: {verb} it with the engine that writes it, or upgrade it to version 9 with Hudi 1.1 or "
            "later"
        )


def check_writable(view: TableView, verb: str = "write") -> None:
    """Refuse a table whose version, or whose base files, this release does not write. `verb` as above.

    Raises: UnsupportedError; its message names the unsupported feature and an engine that supports it.
    """
    check_version_written(view, verb)
    config = view.config
    missing = {
        "tables without meta fields": not config.populates_meta_fields,
        "tables whose data files lack the partition columns": config.drops_partition_columns,
        "bootstrapped tables": config.bootstrap_base_path is not None,
        f"{config.base_file_format} base files": config.base_file_format is not BaseFileFormat.PARQUET,
    }
    for what, found in missing.items():
        if found:
            raise UnsupportedError(
                f"{view.store.uri('')}: this release does not {verb} {what}; {verb} it with JVM Hudi"
            )
