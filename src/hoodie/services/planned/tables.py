"""Tables whose base files this release rewrites: the check of compaction and clustering."""

from __future__ import annotations

from hoodie.errors import UnsupportedError
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.view.table_view import TableView


def check_rewritable(view: TableView, verb: str) -> None:
    """Refuse tables whose base files this release does not write; `verb` is `compact` or `cluster`.

    Raises: UnsupportedError; its message names the unsupported feature and an engine that supports it.
    """
    config, where = view.config, view.store.uri("")
    if not config.version.is_written:
        raise UnsupportedError(
            f"{where} has table version {config.version.value}; this release writes version 9 only and never upgrades "
            f"a table: {verb} it with the engine that writes it, or upgrade it to version 9 with Hudi 1.1 or later"
        )
    missing = {
        "tables without meta fields": not config.populates_meta_fields,
        "tables whose data files lack the partition columns": config.drops_partition_columns,
        "bootstrapped tables": config.bootstrap_base_path is not None,
        f"{config.base_file_format} base files": config.base_file_format is not BaseFileFormat.PARQUET,
    }
    for what, found in missing.items():
        if found:
            raise UnsupportedError(f"{where}: this release does not {verb} {what}; {verb} it with JVM Hudi")
