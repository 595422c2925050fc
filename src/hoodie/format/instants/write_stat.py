"""Write statistics: the changes of an instant in one file.

On-disk format: docs/format/table.md §2.4 (`HoodieWriteStat`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie.errors import CorruptFileError
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.metadata_table.column_stats import ColumnRange

NULL_COMMIT: Final = "null"
"""`prev_commit` of the first file of a file group. On disk: do not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeStats:
    """Milliseconds of the write of one file, by kind of work."""

    total_scan_time_ms: int = 0
    total_create_time_ms: int = 0
    total_upsert_time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStat:
    """Changes of an instant in one base or log file.

    Counts are numbers of records, sizes are bytes, paths are relative to the base path. In an inflight instant the stat
    is a plan: `path` is None, and the counts are the planned counts. The last four fields exist in JSON only.
    """

    file_id: str = ""
    path: str | None = None
    prev_commit: str = NULL_COMMIT
    """Base instant of the previous file slice; `"null"` if the file is the first of its file group."""
    num_writes: int = 0
    """Base file: number of all rows. Log file: number of appended records without deletes."""
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    partition_path: str | None = None
    file_size_bytes: int = 0
    """Final size of the file; the metadata table stores this value."""
    temp_path: str | None = None
    prev_base_file: str | None = None
    cdc_stats: Mapping[str, int] | None = field(default=None, hash=False)
    """Size of each change log file by path."""
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    total_log_records: int = 0
    total_log_files: int | None = None
    total_log_blocks: int = 0
    total_corrupt_log_blocks: int = 0
    total_rollback_blocks: int = 0
    total_updated_records_compacted: int = 0
    total_log_files_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_log_size_compacted: int = 0
    log_version: int | None = None
    """Version in the log file's name; None if the file is a base file."""
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    total_valid_log_blocks: int = 0
    total_log_blocks_size: int = 0
    total_log_blocks_scan_time_ms: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """JSON fields that have no attribute here; `to_json` writes them back."""
    column_ranges: tuple[ColumnRange, ...] | None = field(default=None, compare=False, repr=False)
    """The ranges of the file's columns, for the column statistics. Not stored; None if the writer did not note them."""

    @classmethod
    def of_log(
        cls, path: str, partition_path: str, size_bytes: int, *, prev_commit: str, upsert_time_ms: int = 0
    ) -> WriteStat:
        """Return the stat of a complete log file that an instant wrote; all counts of records are 0."""
        name = LogFileName.parse(name_of(path))
        assert name is not None, path
        return cls(
            file_id=name.file_id,
            path=path,
            prev_commit=prev_commit,
            total_write_bytes=size_bytes,
            file_size_bytes=size_bytes,
            partition_path=partition_path,
            runtime_stats=RuntimeStats(total_upsert_time_ms=upsert_time_ms),
            log_version=name.version,
            log_offset=0,
            base_file="",
            log_files=(name.name,),
        )

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id of the file group."""
        return self.partition_path or "", self.file_id

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each file that the stat names, its change log files too, by path."""
        return {self.path or "": self.file_size_bytes, **(self.cdc_stats or {})}

    @property
    def is_log_append(self) -> bool:
        """Whether the file is a log file."""
        return self.log_version is not None or self.log_files is not None

    @property
    def is_new_file_group(self) -> bool:
        """Whether the file is the first of its file group."""
        return self.prev_commit == NULL_COMMIT

    @classmethod
    def from_record(cls, record: Mapping[str, Any], *, path: str, keep_unknown: bool = False) -> WriteStat:
        """Create a stat from its decoded Avro or JSON form; absent and null fields get their defaults.

        Raises: CorruptFileError if the value of a field has a wrong type.
        """
        values: dict[str, Any] = {}
        for name, attribute, kind in _SCALARS:
            value = record.get(name)
            if value is None:
                continue
            if type(value) is not kind:
                raise CorruptFileError(f"{name}: {kind.__name__} expected, found {value!r}", path=path)
            values[attribute] = value
        if (runtime := record.get("runtimeStats")) is not None:
            values["runtime_stats"] = _parse_runtime(runtime, path)
        if (log_files := record.get("logFiles")) is not None:
            values["log_files"] = parse_texts(log_files, "logFiles", path)
        if (cdc_stats := record.get("cdcStats")) is not None:
            values["cdc_stats"] = _parse_sizes(cdc_stats, path)
        if keep_unknown:
            values["unknown"] = {name: value for name, value in record.items() if name not in _KNOWN_NAMES}
        return cls(**values)

    def to_avro(self) -> dict[str, Any]:
        """Return the record for the Avro writer."""
        record: dict[str, Any] = {name: getattr(self, attribute) for name, attribute in _AVRO_FIELDS}
        record["logFiles"] = None if self.log_files is None else list(self.log_files)
        record["runtimeStats"] = self._runtime_record()
        return record

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form with the keys in the JVM's order; only a log file has the log fields."""
        record: dict[str, Any] = {name: getattr(self, attribute) for name, attribute in _JSON_FIELDS}
        record["runtimeStats"] = self._runtime_record()
        if self.is_log_append:
            record["logVersion"] = self.log_version
            record["logOffset"] = self.log_offset
            record["baseFile"] = self.base_file
            record["logFiles"] = list(self.log_files or ())
        return {**record, **self.unknown}

    def _runtime_record(self) -> dict[str, int] | None:
        if self.runtime_stats is None:
            return None
        return {name: getattr(self.runtime_stats, attribute) for name, attribute in _RUNTIME_FIELDS}


# (name on disk, attribute, type), in the order of the JVM's JSON.
_SCALARS: Final[tuple[tuple[str, str, type], ...]] = (
    ("numInserts", "num_inserts", int),
    ("numUpdates", "num_updates", int),
    ("numDeletes", "num_deletes", int),
    ("totalLogReadTimeMs", "total_log_read_time_ms", int),
    ("totalLogRecords", "total_log_records", int),
    ("totalLogFilesCompacted", "total_log_files_compacted", int),
    ("totalLogSizeCompacted", "total_log_size_compacted", int),
    ("totalUpdatedRecordsCompacted", "total_updated_records_compacted", int),
    ("totalLogBlocks", "total_log_blocks", int),
    ("totalValidLogBlocks", "total_valid_log_blocks", int),
    ("totalLogBlocksSize", "total_log_blocks_size", int),
    ("totalLogBlocksScanTimeMs", "total_log_blocks_scan_time_ms", int),
    ("totalCorruptLogBlock", "total_corrupt_log_blocks", int),
    ("totalRollbackBlocks", "total_rollback_blocks", int),
    ("fileId", "file_id", str),
    ("path", "path", str),
    ("prevCommit", "prev_commit", str),
    ("numWrites", "num_writes", int),
    ("numUpdateWrites", "num_update_writes", int),
    ("totalWriteBytes", "total_write_bytes", int),
    ("totalWriteErrors", "total_write_errors", int),
    ("tempPath", "temp_path", str),
    ("partitionPath", "partition_path", str),
    ("fileSizeInBytes", "file_size_bytes", int),
    ("minEventTime", "min_event_time", int),
    ("maxEventTime", "max_event_time", int),
    ("prevBaseFile", "prev_base_file", str),
    ("totalLogFiles", "total_log_files", int),
    ("logVersion", "log_version", int),
    ("logOffset", "log_offset", int),
    ("baseFile", "base_file", str),
)
_RUNTIME_FIELDS: Final = (
    ("totalScanTime", "total_scan_time_ms"),
    ("totalUpsertTime", "total_upsert_time_ms"),
    ("totalCreateTime", "total_create_time_ms"),
)
_STRUCTURED: Final = frozenset({"cdcStats", "runtimeStats", "logFiles"})
_KNOWN_NAMES: Final = _STRUCTURED | {name for name, _, _ in _SCALARS}
_JSON_ONLY: Final = frozenset({"totalValidLogBlocks", "totalLogBlocksSize", "totalLogBlocksScanTimeMs"})
_NOT_IN_JSON: Final = frozenset({"totalLogFiles", "logVersion", "logOffset", "baseFile"})
_AVRO_FIELDS: Final = tuple(
    [(name, attribute) for name, attribute, _ in _SCALARS if name not in _JSON_ONLY] + [("cdcStats", "cdc_stats")]
)


def _json_fields() -> tuple[tuple[str, str], ...]:
    ordered = [(name, attribute) for name, attribute, _ in _SCALARS if name not in _NOT_IN_JSON]
    after_path = [name for name, _ in ordered].index("path") + 1
    ordered.insert(after_path, ("cdcStats", "cdc_stats"))
    return tuple(ordered)


_JSON_FIELDS: Final = _json_fields()


def by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    """Group statistics by partition path and keep their order; the path is `""` if the table has no partitions."""
    grouped: dict[str, list[WriteStat]] = {}
    for stat in stats:
        grouped.setdefault(stat.partition_path or "", []).append(stat)
    return {path: tuple(found) for path, found in grouped.items()}


def parse_texts(value: object, name: str, path: str) -> tuple[str, ...]:
    """Check that a decoded value is a list of strings, and return it.

    Raises: CorruptFileError if the value has another type.
    """
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CorruptFileError(f"{name}: a list of strings expected, found {value!r}", path=path)
    return tuple(value)


def _parse_sizes(value: object, path: str) -> dict[str, int]:
    if not isinstance(value, dict) or not all(type(size) is int for size in value.values()):
        raise CorruptFileError(f"cdcStats: sizes by path expected, found {value!r}", path=path)
    return value


def _parse_runtime(value: object, path: str) -> RuntimeStats:
    if not isinstance(value, dict):
        raise CorruptFileError(f"runtimeStats: a record expected, found {value!r}", path=path)
    times = {attribute: value.get(name) or 0 for name, attribute in _RUNTIME_FIELDS}
    if not all(type(time_ms) is int for time_ms in times.values()):
        raise CorruptFileError(f"runtimeStats: milliseconds expected, found {value!r}", path=path)
    return RuntimeStats(**times)
