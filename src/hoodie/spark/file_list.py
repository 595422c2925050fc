"""Give Spark the files of a scan: many of them as a list with sizes, so that Spark neither lists nor checks a path.

Spark lists each path that a reader is given in a task of its own, after it checked in the driver that the path exists:
10 ms a file on a local disk, and two or three requests a file on an object store. A folder with a log of Spark's file
sink (`_spark_metadata`, in which a streaming query notes the files it has written) is read without both.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from hoodie.errors import HoodieWarning
from hoodie.storage.scratch import scratch_folder

LISTED_FILES_MAX: Final = 32
"""Spark lists up to so many paths in the driver, without a job (`parallelPartitionDiscovery.threshold`)."""
_CONNECT_TASKS_MAX: Final = 256
_LOG_FOLDER: Final = "_spark_metadata"
_LOG_VERSION: Final = "v1"
_IGNORE_LOG: Final = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
_LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_SENTINEL: Final = "spark-did-not-read-the-list-of-files.parquet"
_GLOB_CHARACTERS: Final = set("\\{}[]*?")


@dataclass(frozen=True, slots=True)
class FileOfScan:
    """A file that Spark reads: its URI without percent-encoding, its bytes, and when it was written."""

    uri: str
    size_bytes: int
    written_ms: int


def read_files(session: Any, reader: Any, files: Sequence[FileOfScan]) -> Any:
    """Return the rows of Parquet files as a DataFrame; `reader` has the schema and the options.

    Of more than 32 files a session of this process gets a list, in a temporary folder that is deleted at once. The
    sizes must be exact. Spark Connect resolves the paths when a query runs, maybe on another machine: it lists them.
    """
    reader = reader.option("recursiveFileLookup", "true")
    is_connect = ".connect." in type(session).__module__
    if len(files) <= LISTED_FILES_MAX or is_connect or session.conf.get(_IGNORE_LOG, "false") == "true":
        if is_connect:
            _warn_of_tasks(session, len(files))
        return reader.parquet(*(_literal_path(file.uri) for file in files))
    with scratch_folder() as folder:
        # A Spark that knows no such log finds this file, and raises an error: without it, the table would seem empty.
        with folder.open_output(_SENTINEL) as sentinel:
            sentinel.write(_SENTINEL.encode())
        with folder.folder(_LOG_FOLDER).open_output("0") as log:
            log.write(_LOG_VERSION.encode())
            for file in files:
                log.write(_entry(file))
        return reader.parquet(folder.uri)


def _entry(file: FileOfScan) -> bytes:
    """Return a line of the log: a file that was added."""
    scheme, _, path = file.uri.partition("://")
    entry = {
        "path": f"{scheme}://{quote(path)}",
        "size": file.size_bytes,
        "isDir": False,
        "modificationTime": file.written_ms,
        "blockReplication": 1,
        "blockSize": file.size_bytes,
        "action": "add",
    }
    return b"\n" + json.dumps(entry).encode()


def _warn_of_tasks(session: Any, count: int) -> None:
    tasks = min(count, int(session.conf.get(_LISTING_TASKS)))
    if tasks > _CONNECT_TASKS_MAX:
        warnings.warn(
            f"Spark Connect lists the {count} files of this read in {tasks} tasks each time a query runs; fewer tasks "
            f"are faster: session.conf.set({_LISTING_TASKS!r}, 8)",
            HoodieWarning,
            stacklevel=2,
        )


def _literal_path(path: str) -> str:
    """Escape the glob characters of a path, so that Spark reads exactly this path."""
    return "".join(f"\\{char}" if char in _GLOB_CHARACTERS else char for char in path)
