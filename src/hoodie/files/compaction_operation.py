"""Convert file slices to compaction operations, and compaction operations to file slices.

docs/format/table.md §2.5 (`HoodieCompactionOperation`). Plans contain file names without their folder.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import CorruptFileError
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.format.instants.service_metadata import CompactionOperation

LOG_FILES = "TOTAL_LOG_FILES"
LOG_BYTES = "TOTAL_LOG_FILES_SIZE"
READ_MIB = "TOTAL_IO_READ_MB"
WRITE_MIB = "TOTAL_IO_WRITE_MB"
TOTAL_MIB = "TOTAL_IO_MB"
_MIB = 1024 * 1024


def operation_of(partition: str, file_slice: FileSlice, source: str | None = None) -> CompactionOperation:
    """Return the compaction operation of one file slice; `partition` is its partition path in the plan.

    `source`: the source file of a skeleton file.
    """
    base = file_slice.base_file
    logs_bytes = sum(log.size_bytes for log in file_slice.log_files)
    read_mib = float((logs_bytes + (base.size_bytes if base else 0)) // _MIB)
    write_mib = float((base.size_bytes if base else 0) // _MIB)
    return CompactionOperation(
        base_instant_time=file_slice.base_instant_time,
        delta_file_paths=tuple(log.name.name for log in file_slice.log_files),
        data_file_path=base.name if base else None,
        file_id=file_slice.file_id,
        partition_path=partition,
        metrics={
            LOG_FILES: float(len(file_slice.log_files)),
            LOG_BYTES: float(logs_bytes),
            READ_MIB: read_mib,
            WRITE_MIB: write_mib,
            TOTAL_MIB: read_mib + write_mib,
        },
        bootstrap_file_path=source,
    )


def slice_of(operation: CompactionOperation, folder: str, sizes: Mapping[str, int] | None = None) -> FileSlice:
    """Return the file slice of an operation, in `folder`.

    A plan contains no file sizes: `sizes` maps file names to bytes; a size that is not known is 0.

    Raises: CorruptFileError if the plan contains names that are not names of base files or log files.
    """
    known = sizes or {}
    base: BaseFile | None = None
    if operation.data_file_path:
        name = operation.data_file_path
        parsed = BaseFileName.parse(name)
        if parsed is None:
            raise CorruptFileError(
                "expected the name of a base file in the compaction plan, found another name", path=name
            )
        base = BaseFile(folder, name, parsed.file_id, parsed.instant_time, known.get(name, 0))
    parsed_logs = [LogFileName.parse(name) for name in operation.delta_file_paths]
    logs = [LogFile(folder, name, known.get(name.name, 0)) for name in parsed_logs if name is not None]
    if len(logs) != len(parsed_logs):
        message = f"expected names of log files in the compaction plan, found {list(operation.delta_file_paths)}"
        raise CorruptFileError(message, path=operation.file_id)
    logs.sort(key=lambda log: log.name.sort_key)
    return FileSlice(folder, operation.file_id, operation.base_instant_time, base, tuple(logs))


def work_bytes(operation: CompactionOperation) -> int:
    """Return about how many bytes the operation reads, by the metrics of the plan."""
    metrics = operation.metrics or {}
    return int(metrics.get(LOG_BYTES, 0.0) + metrics.get(READ_MIB, 0.0) * _MIB)
