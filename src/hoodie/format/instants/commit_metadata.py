"""Content of commit, deltacommit and replacecommit instant files, inflight and completed.

The content is JSON on table version 6, and an Avro container on later versions. The parser detects the form.
On-disk format: docs/format/table.md §2.3, §2.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import (
    RecordSchema,
    decode_record,
    first_items,
    is_avro_file,
    only_record,
    record_to_bytes,
)
from hoodie.format.instants.write_stat import NULL_COMMIT, RuntimeStats, WriteStat, parse_texts
from hoodie.format.json_text import parse_json_object
from hoodie.format.table.versions import TableVersion

__all__ = ["NULL_COMMIT", "SCHEMA_KEY", "CommitMetadata", "RuntimeStats", "WriteOperation", "WriteStat"]

SCHEMA_KEY: Final = "schema"
"""Key of `extra_metadata` whose value is the table's Avro schema without meta fields."""


class WriteOperation(StrEnum):
    """Operation of a write. On disk (`operationType`): do not change."""

    INSERT = "INSERT"
    INSERT_PREPPED = "INSERT_PREPPED"
    UPSERT = "UPSERT"
    UPSERT_PREPPED = "UPSERT_PREPPED"
    BULK_INSERT = "BULK_INSERT"
    BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
    DELETE = "DELETE"
    DELETE_PREPPED = "DELETE_PREPPED"
    BOOTSTRAP = "BOOTSTRAP"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    BUCKET_RESCALE = "BUCKET_RESCALE"
    CLUSTER = "CLUSTER"
    DELETE_PARTITION = "DELETE_PARTITION"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    COMPACT = "COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    LOG_COMPACT = "LOG_COMPACT"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """Result of an instant: the written files by partition path, and the schema of the table.

    `partition_to_replace_file_ids` is None for a plain commit and a mapping, possibly empty, for a replacecommit.
    `operation_type` is text, so that operations of later Hudi releases are kept; compare it with `WriteOperation`.
    `version` is an unused field of the Avro form, which the JVM leaves null.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict, hash=False)
    compacted: bool = False
    extra_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    operation_type: str | None = None
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = field(default=None, hash=False)
    version: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """JSON fields that have no attribute here; `to_bytes` writes them back in JSON."""

    @property
    def schema(self) -> str | None:
        """Avro schema (JSON text) of the table without meta fields; None if the instant stores no schema."""
        return self.extra_metadata.get(SCHEMA_KEY) or None

    def changed_records(self) -> dict[str, int] | None:
        """Return the records that were inserted, updated and deleted, as the write stats count them.

        None for compactions, log compactions and clusterings, which rewrite records and change none.
        """
        if self.operation_type in REARRANGING:
            return None
        stats = list(self.write_stats())
        return {
            "inserted": sum(stat.num_inserts for stat in stats),
            "updated": sum(stat.num_update_writes for stat in stats),
            "deleted": sum(stat.num_deletes for stat in stats),
        }

    def write_stats(self) -> Iterator[WriteStat]:
        """Iterate over the write stats of all partitions."""
        for stats in self.partition_to_write_stats.values():
            yield from stats

    def replaced_groups(self) -> set[tuple[str, str]]:
        """Return partition path and file id of the file groups that the commit replaced."""
        replaced = self.partition_to_replace_file_ids or {}
        return {(path, file_id) for path, file_ids in replaced.items() for file_id in file_ids}

    @classmethod
    def parse(cls, data: bytes, *, path: str = "<memory>") -> CommitMetadata:
        """Parse an instant file's content, JSON or Avro; an empty file means empty metadata.

        Raises: CorruptFileError if the content is truncated, or is not commit metadata.
        """
        return _parsed(data, path, is_head=False) if data else cls()

    @classmethod
    def parse_head(cls, data: bytes, *, path: str = "<memory>") -> CommitMetadata:
        """Parse an instant file's content without its write stats, which a commit has for each file it wrote.

        Raises: as `parse`.
        """
        return _parsed(data, path, is_head=True) if data else cls()

    @classmethod
    def iter_stats(cls, data: bytes, *, path: str = "<memory>") -> Iterator[WriteStat]:
        """Iterate over the write stats of an instant file's content; each is decoded when the iterator reaches it.

        Raises: as `parse`, for the stats that are decoded.
        """
        if data and is_avro_file(data):
            schema, block, offset = _avro_record(data, path)
            found = first_items(schema, block, _STATS, path=path, offset=offset)
            if found is not None:
                return (WriteStat.from_record(stat, path=path) for stat in found)
        return cls.parse(data, path=path).write_stats()

    def to_bytes(self, table_version: TableVersion | int, *, sync_marker: bytes | None = None) -> bytes:
        """Return the content of an instant file of this table version.

        `sync_marker` (Avro only) has 16 bytes; None means a random value.
        """
        if not TableVersion.of(table_version).commit_metadata_is_avro:
            record = self._record(WriteStat.to_json, self.operation_type or WriteOperation.UNKNOWN.value)
            return json.dumps({**record, **self.unknown}, ensure_ascii=False).encode()
        name = _COMMIT if self.partition_to_replace_file_ids is None else _REPLACE_COMMIT
        record = {**self._record(WriteStat.to_avro, self.operation_type), "version": self.version}
        return record_to_bytes(RecordSchema.load(name), record, sync_marker=sync_marker)

    def _record(self, write: Callable[[WriteStat], dict[str, Any]], operation: str | None) -> dict[str, Any]:
        """Return the fields of both forms, in the JVM's order."""
        record: dict[str, Any] = {
            _STATS: {path: [write(stat) for stat in stats] for path, stats in self.partition_to_write_stats.items()},
            "compacted": self.compacted,
            "extraMetadata": dict(self.extra_metadata),
            "operationType": operation,
        }
        if self.partition_to_replace_file_ids is not None:
            record[_REPLACED] = {path: list(ids) for path, ids in self.partition_to_replace_file_ids.items()}
        return record


REARRANGING: Final = frozenset({WriteOperation.COMPACT, WriteOperation.LOG_COMPACT, WriteOperation.CLUSTER})
"""Operations of the table services that execute a stored plan: they change no record."""
_T = TypeVar("_T")
_STATS: Final = "partitionToWriteStats"
_REPLACED: Final = "partitionToReplaceFileIds"
_COMMIT: Final = "HoodieCommitMetadata"
_REPLACE_COMMIT: Final = "HoodieReplaceCommitMetadata"
_KNOWN_NAMES: Final = frozenset({_STATS, "compacted", "extraMetadata", "version", "operationType", _REPLACED})


def _avro_record(data: bytes, path: str) -> tuple[RecordSchema, bytes, int]:
    """Return the schema and the bytes of the record, as `only_record`. Raises: CorruptFileError for other records."""
    schema, block, offset = only_record(data, path=path)
    if schema.name not in (_COMMIT, _REPLACE_COMMIT):
        raise CorruptFileError(f"the record HoodieCommitMetadata expected, found {schema.name}", path=path)
    return schema, block, offset


def _parsed(data: bytes, path: str, *, is_head: bool) -> CommitMetadata:
    is_json = not is_avro_file(data)
    if is_json:
        record = parse_json_object(data, path=path, expected="an Avro container or a JSON object")
        is_replace = _REPLACED in record
    else:
        schema, block, offset = _avro_record(data, path)
        without = _STATS if is_head else None
        record = decode_record(schema, block, path=path, offset=offset, without=without)
        is_replace = schema.name == _REPLACE_COMMIT
    if is_head:
        record = {**record, _STATS: None}
    return _from_record(record, path, is_replace=is_replace, keep_unknown=is_json)


def _from_record(record: Mapping[str, Any], path: str, *, is_replace: bool, keep_unknown: bool) -> CommitMetadata:
    entries_of = _expect(record.get(_STATS), dict, _STATS, path)
    stats = {
        partition: tuple(
            WriteStat.from_record(_expect(stat, dict, "write stat", path), path=path, keep_unknown=keep_unknown)
            for stat in _expect(entries, list, "write stats", path)
        )
        for partition, entries in entries_of.items()
    }
    ids_of = _expect(record.get(_REPLACED), dict, _REPLACED, path)
    replaced = {partition: parse_texts(ids, _REPLACED, path) for partition, ids in ids_of.items() if is_replace}
    extra = _expect(record.get("extraMetadata"), dict, "extraMetadata", path)
    return CommitMetadata(
        partition_to_write_stats=stats,
        compacted=_expect(record.get("compacted"), bool, "compacted", path),
        extra_metadata={key: _expect(value, str, f"extraMetadata.{key}", path) for key, value in extra.items()},
        operation_type=_optional(record.get("operationType"), str, "operationType", path),
        partition_to_replace_file_ids=replaced if is_replace else None,
        version=None if keep_unknown else _optional(record.get("version"), int, "version", path),
        unknown={name: value for name, value in record.items() if name not in _KNOWN_NAMES} if keep_unknown else {},
    )


def _expect(value: object, kind: type[_T], name: str, path: str) -> _T:
    """Check the type of a decoded value and return the value; null becomes the type's empty value."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise CorruptFileError(f"{name}: {kind.__name__} expected, found {type(value).__name__}", path=path)
    return value


def _optional(value: object, kind: type[_T], name: str, path: str) -> _T | None:
    return None if value is None else _expect(value, kind, name, path)
