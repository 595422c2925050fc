"""Lists the data files of a table from its folders.

Used for tables without a metadata table, and to build or check a metadata table.
"""

from __future__ import annotations

from collections.abc import Callable

from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName
from hoodie.format.table.table_config import BaseFileFormat, TableConfig
from hoodie.storage import FileInfo, Store
from hoodie.timeline import HOODIE_FOLDER, Timeline

_EXTENSIONS = frozenset(kind.extension for kind in BaseFileFormat)


def list_from_storage(store: Store, config: TableConfig, timeline: Timeline) -> dict[str, dict[str, int]]:
    """List the committed base and log files from storage: partition path -> file name -> size in bytes.

    A folder is a partition if it holds `.hoodie_partition_metadata`; partitions do not nest. Files of instants that are
    neither completed in `timeline` nor archived are left out. All log files of table version 6 are listed: their names
    have the base instant only, and readers check their blocks. Each folder of the table costs one or two listings.
    """
    found: dict[str, dict[str, int]] = {}
    folders = [""]
    is_committed = _committed_files(config, timeline)
    while folders:
        folder = folders.pop()
        infos = store.list(folder)
        if any(_is_partition_metadata(info.name) for info in infos):
            found[folder] = {info.name: info.size_bytes for info in infos if is_committed(info)}
        else:
            folders += [below for below in store.folders(folder) if below != HOODIE_FOLDER]
    return dict(sorted(found.items()))


def _is_partition_metadata(name: str) -> bool:
    return name == PARTITION_METADATA_NAME or (
        name.startswith(f"{PARTITION_METADATA_NAME}.") and name.rpartition(".")[2] in _EXTENSIONS
    )


def _committed_files(config: TableConfig, timeline: Timeline) -> Callable[[FileInfo], bool]:
    """Return a function that checks whether a file is committed; it looks up each instant once."""
    known: dict[str, bool] = {}

    def is_of_committed(instant_time: str) -> bool:
        if instant_time not in known:
            known[instant_time] = timeline.contains_or_before_start(instant_time)
        return known[instant_time]

    def is_committed(info: FileInfo) -> bool:
        base = BaseFileName.parse(info.name)
        if base is not None:
            return base.extension in _EXTENSIONS and is_of_committed(base.instant_time)
        log = LogFileName.parse(info.name)
        return log is not None and (config.version.log_name_has_base_instant or is_of_committed(log.instant_time))

    return is_committed
