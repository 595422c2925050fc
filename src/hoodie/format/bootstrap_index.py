"""The bootstrap index: which source file a skeleton file was made for; two HFiles, by file group and by partition.

On-disk format: docs/format/table.md §3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import RecordSchema, parse_record, record_to_bytes
from hoodie.format.hfile import Compression, hfile_to_bytes

INSTANT: Final = "00000000000001"
"""Requested time of the commit of skeleton files. On disk: do not change."""
_NAME: Final = f"00000000-0000-0000-0000-000000000000-0_1-0-1_{INSTANT}.hfile"
BY_FILE_ID: Final = f".hoodie/.aux/.bootstrap/.fileids/{_NAME}"
BY_PARTITION: Final = f".hoodie/.aux/.bootstrap/.partitions/{_NAME}"
_INFO: Final = "INDEX_INFO"
_BLOCK_BYTES: Final = 32 * 1024 * 1024
"""The block size that Hadoop states for files of a local disk; no reader of a Parquet file uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkeletonSource:
    """A source file, and the file group of the skeleton that was made for it. `uri`: absolute path or URI."""

    partition_path: str
    file_id: str
    uri: str
    size_bytes: int
    modified_ms: int

    @property
    def key(self) -> bytes:
        """The key of the entry in the index by file group."""
        return file_group_key(self.partition_path, self.file_id)


def file_group_key(partition_path: str, file_id: str) -> bytes:
    """Return the key of a file group in the index by file group."""
    return f"part={partition_path};fileid={file_id}".encode()


def parse_source(value: bytes, *, path: str) -> tuple[str, int]:
    """Return the URI and the length of the source file of an entry of the index by file group.

    Raises: CorruptFileError; `path` names the index.
    """
    _, record = parse_record(value, path=path)
    status = _mapping(record, "bootstrapFileStatus", path)
    uri, length = _mapping(status, "path", path).get("uri"), status.get("length")
    if not isinstance(uri, str) or not isinstance(length, int):
        raise CorruptFileError("a source file's path and length expected, found none", path=path)
    return uri, length


def index_by_file_id(sources: Iterable[SkeletonSource], base_path: str, created_ms: int) -> bytes:
    """Encode the index by file group. `base_path`: the folder of the source files. Memory: the index twice."""
    schema = RecordSchema.load("HoodieBootstrapFilePartitionInfo")
    values = {
        source.key: record_to_bytes(
            schema,
            {
                "version": None,
                "bootstrapPartitionPath": source.partition_path,
                "bootstrapFileStatus": _status(source),
                "partitionPath": source.partition_path,
            },
        )
        for source in sources
    }
    return _encoded(values, schema, base_path, created_ms)


def index_by_partition(sources: Iterable[SkeletonSource], base_path: str, created_ms: int) -> bytes:
    """Encode the index by partition; as `index_by_file_id`."""
    schema = RecordSchema.load("HoodieBootstrapPartitionMetadata")
    groups: dict[str, list[SkeletonSource]] = {}
    for source in sources:
        groups.setdefault(source.partition_path, []).append(source)
    values = {
        f"part={partition_path}".encode(): record_to_bytes(
            schema,
            {
                "version": None,
                "bootstrapPartitionPath": partition_path,
                "partitionPath": partition_path,
                "fileIdToBootstrapFile": {source.file_id: _status(source) for source in own},
            },
        )
        for partition_path, own in groups.items()
    }
    return _encoded(values, schema, base_path, created_ms)


def _encoded(values: Mapping[bytes, bytes], schema: RecordSchema, base_path: str, created_ms: int) -> bytes:
    keys: Sequence[bytes] = sorted(values)
    info = {"version": 1, "bootstrapBasePath": base_path, "createdTimestamp": created_ms, "numKeys": len(keys)}
    return hfile_to_bytes(
        pa.array(keys, pa.binary()),
        pa.array([values[key] for key in keys], pa.binary()),
        schema_json=schema.text,
        codec=Compression.NONE,
        file_info={_INFO: record_to_bytes(RecordSchema.load("HoodieBootstrapIndexInfo"), info)},
    )


def _status(source: SkeletonSource) -> dict[str, Any]:
    return {
        "version": None,
        "path": {"version": 1, "uri": source.uri},
        "length": source.size_bytes,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": _BLOCK_BYTES,
        "modificationTime": source.modified_ms,
        "accessTime": source.modified_ms,
        "permission": None,
        "owner": None,
        "group": None,
        "symlink": None,
    }


def _mapping(record: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    found = record.get(key)
    if not isinstance(found, dict):
        raise CorruptFileError(f"{key}: a record expected, found {type(found).__name__}", path=path)
    return found
