"""Paths and names of the metadata table, and errors that name them (docs/format/metadata.md §3.1 to §3.3)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from hoodie.errors import CorruptFileError
from hoodie.files.damage import missing_file
from hoodie.files.logs.log_scan import CommitRecords
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.versions import TableVersion
from hoodie.storage import Store
from hoodie.timeline import Layout, layout_for

METADATA_FOLDER: Final = ".hoodie/metadata"
METADATA_HOODIE_FOLDER: Final = f"{METADATA_FOLDER}/.hoodie"
METADATA_PROPERTIES: Final = f"{METADATA_HOODIE_FOLDER}/hoodie.properties"
INDEX_DEFINITIONS: Final = ".hoodie/.index_defs/index.json"
METADATA_TIMELINE_PATH: Final = "timeline"
METADATA_HISTORY_PATH: Final = "history"
METADATA_HISTORY: Final = f"{METADATA_HOODIE_FOLDER}/{METADATA_TIMELINE_PATH}/{METADATA_HISTORY_PATH}"
METADATA_VERSION: Final = TableVersion.NINE
"""The version whose facts hold for the files of metadata tables of versions 8 and 9; their indexes exist only there."""
METADATA_ARCHIVED: Final = TableVersion.SIX.archive_folder
"""Folder of the archive of a metadata table of version 6, in the folder of its timeline."""
METADATA_COMMITS: Final = CommitRecords(
    layout_for(METADATA_VERSION, METADATA_TIMELINE_PATH, folder=METADATA_HOODIE_FOLDER), METADATA_HISTORY_PATH
)
"""Where the commits of the metadata table record the content of its log files, in versions 8 and 9."""

REBUILD_ADVICE: Final = "build the metadata table anew with t.index.rebuild(); it holds derived data only"
"""What to do about a damaged metadata table; for error messages."""


def partition_folder(partition: str) -> str:
    """Return the folder of a partition of the metadata table, relative to the data table's base path."""
    return f"{METADATA_FOLDER}/{partition}"


def metadata_layout(config: TableConfig) -> Layout:
    """Return the timeline layout of a data table's metadata table."""
    return layout_for(config.version, METADATA_TIMELINE_PATH, zone=config.timezone, folder=METADATA_HOODIE_FOLDER)


def file_id_of(prefix: str, index: int) -> str:
    """Return the file id of a file group of a metadata partition; `index` is its position in the sorted list."""
    return f"{prefix}{index:04d}-0"


_REMEDY = f"or {REBUILD_ADVICE}"


@contextlib.contextmanager
def expected_metadata_file(store: Store, path: str) -> Iterator[None]:
    """Add what to do to the errors for a file of the metadata table that is damaged or missing."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(store, path).with_remedy(_REMEDY) from error
    except CorruptFileError as error:
        raise error.with_remedy(_REMEDY) from error
