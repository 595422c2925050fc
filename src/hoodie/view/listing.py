"""Lists the data files of a table from its folders.

Used for tables without a metadata table, and to build or check a metadata table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName
from hoodie.format.table.table_config import BaseFileFormat, TableConfig
from hoodie.storage import FileInfo, Store
from hoodie.timeline import HOODIE_FOLDER, ArchivedTimeline, Timeline
from hoodie.view.archived import committed_times

_EXTENSIONS = frozenset(kind.extension for kind in BaseFileFormat)


def list_from_storage(
    store: Store, config: TableConfig, timeline: Timeline, archive: ArchivedTimeline
) -> dict[str, dict[str, int]]:
    """List the committed base and log files from storage: partition path -> file name -> size in bytes.

    A folder is a partition if it holds `.hoodie_partition_metadata`; partitions do not nest. Files of instants that are
    neither completed in `timeline` nor archived are left out. All log files of table version 6 are listed: their names
    have the base instant only, and readers check their blocks. Each folder of the table costs one or two listings. The
    archive is read if there are files of instants that are not on the timeline (`committed_times`).

    Raises: CorruptFileError if the archive is damaged.
    """
    found: dict[str, list[tuple[FileInfo, str | None]]] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        infos = store.list(folder)
        if any(_is_partition_metadata(info.name) for info in infos):
            found[folder] = list(_data_files(config, infos))
        else:
            folders += [below for below in store.folders(folder) if below != HOODIE_FOLDER]
    times = {time for infos_of in found.values() for _, time in infos_of if time is not None}
    committed = committed_times(timeline, archive, times)
    return {
        folder: {info.name: info.size_bytes for info, time in found[folder] if time is None or time in committed}
        for folder in sorted(found)
    }


def _is_partition_metadata(name: str) -> bool:
    return name == PARTITION_METADATA_NAME or (
        name.startswith(f"{PARTITION_METADATA_NAME}.") and name.rpartition(".")[2] in _EXTENSIONS
    )


def _data_files(config: TableConfig, infos: Iterable[FileInfo]) -> Iterator[tuple[FileInfo, str | None]]:
    """Yield base files and log files with the instant that must be committed; None: the file counts in any case."""
    for info in infos:
        base = BaseFileName.parse(info.name)
        if base is not None:
            if base.extension in _EXTENSIONS:
                yield info, base.instant_time
            continue
        log = LogFileName.parse(info.name)
        if log is not None:
            yield info, None if config.version.log_name_has_base_instant else log.instant_time
