"""Files of an archived timeline of versions 8 and 9: Parquet files of instants, and manifests that list them.

On-disk format: docs/format/table.md §2.7.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.format.json_text import parse_json_object

VERSION_FILE: Final = "_version_"
MANIFEST_PREFIX: Final = "manifest_"
_INSTANT_VERSION: Final = 1
_DIGITS_MAX: Final = 18
_ROW_GROUP_INSTANTS: Final = 128
"""Instants of a row group: a reader of one instant's content reads so many."""
_NAME = re.compile(r"(\d+)_(\d+)_(\d)\.parquet", re.ASCII)
_TEXT = {"type": "string", "avro.java.string": "String"}
_AVRO_FIELDS: Final[list[dict[str, Any]]] = [
    *({"name": name, "type": ["null", _TEXT], "default": None} for name in ("instantTime", "completionTime", "action")),
    *({"name": name, "type": ["null", "bytes"], "default": None} for name in ("metadata", "plan")),
    {"name": "version", "type": "int", "default": _INSTANT_VERSION},
]
_AVRO_SCHEMA: Final = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": "org.apache.hudi.avro.model",
    "fields": _AVRO_FIELDS,
}
_SCHEMA: Final = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedInstant:
    """A completed instant in the archive; one row.

    `action` is the completed action. `metadata` is the content of the completed file. `plan` is the content of the
    requested file for actions whose plan is archived, else None.
    """

    requested_time: str
    completion_time: str
    action: str
    metadata: bytes | None = None
    plan: bytes | None = None


@dataclass(frozen=True, slots=True, order=True)
class ArchiveFileName:
    """Name of a file of archived instants: `<first instant>_<last instant>_<layer>.parquet`; layer 0 is the newest.

    An upgrade by JVM Hudi writes the archive files of version 6 one after the other, the newest first, and names the
    result by its first and last row. Such a name is no range, and neither is the name of a file that the JVM merged
    from such files: `TimelineArchive.ranged`.
    """

    first_time: str
    last_time: str
    layer: int = 0

    @property
    def name(self) -> str:
        """The name without its folder."""
        return f"{self.first_time}_{self.last_time}_{self.layer}.parquet"

    def may_have(self, first_time: str, last_time: str) -> bool:
        """Return whether the file may have an instant between two times (inclusive)."""
        return self.first_time <= last_time and self.last_time >= first_time

    @classmethod
    def parse(cls, name: str) -> ArchiveFileName | None:
        """Parse a name without its folder; None for other files."""
        match = _NAME.fullmatch(name)
        return None if match is None else cls(match[1], match[2], int(match[3]))


@dataclass(frozen=True, slots=True, order=True)
class ArchiveFile:
    """A valid file of the archive: its name and its size in bytes."""

    name: str
    size_bytes: int

    @property
    def parsed_name(self) -> ArchiveFileName:
        """The parsed name. Raises: CorruptFileError if it is not the name of a file of archived instants."""
        parsed = ArchiveFileName.parse(self.name)
        if parsed is None:
            message = "expected <first instant>_<last instant>_<layer>.parquet in a manifest of the archived timeline"
            raise CorruptFileError(message, path=self.name)
        return parsed


@dataclass(frozen=True, slots=True)
class ArchiveManifest:
    """One snapshot of the archive: the list of its valid files."""

    files: tuple[ArchiveFile, ...] = ()

    @classmethod
    def parse(cls, data: bytes, *, path: str = "<memory>") -> ArchiveManifest:
        """Parse a manifest file. Raises: CorruptFileError if the content is not a manifest."""
        try:
            listed = parse_json_object(data, path=path)["files"]
            return cls(tuple(ArchiveFile(str(entry["fileName"]), int(entry["fileLen"])) for entry in listed))
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFileError(f"not a manifest of an archived timeline: {error!r}", path=path) from error

    def to_bytes(self) -> bytes:
        """Return the content of the manifest file."""
        listed = [{"fileName": file.name, "fileLen": file.size_bytes} for file in self.files]
        return json.dumps({"files": listed}, indent=2).encode()


def manifest_name(version: int) -> str:
    """Return the name of a snapshot's manifest; the first snapshot has version 1."""
    return f"{MANIFEST_PREFIX}{version}"


def manifest_version(name: str) -> int | None:
    """Return the snapshot version in the name of a manifest file; None for other files."""
    digits = name.removeprefix(MANIFEST_PREFIX)
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
    return int(digits) if name.startswith(MANIFEST_PREFIX) and is_number else None


def archived_to_bytes(instants: Sequence[ArchivedInstant]) -> bytes:
    """Encode instants, sorted by requested time, as a file of the archive."""
    columns = [
        [instant.requested_time for instant in instants],
        [instant.completion_time for instant in instants],
        [instant.action for instant in instants],
        [instant.metadata for instant in instants],
        [instant.plan for instant in instants],
        [_INSTANT_VERSION] * len(instants),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return _to_bytes(pa.Table.from_arrays(arrays, schema=_SCHEMA))


def merged_to_bytes(files: Iterable[bytes], *, path: str = "<memory>") -> bytes:
    """Encode the rows of several files of the archive as one file, sorted by requested time, each instant once.

    Raises: CorruptFileError if one of the files does not parse.
    """
    rows = pa.concat_tables([_read(data, _SCHEMA.names, path) for data in files])
    times, actions = (rows[name].to_pylist() for name in ("instantTime", "action"))
    # A JVM that stops after it archived instants, and before it deleted their files, archives them a second time.
    first = {
        (time or "", action or ""): row
        for row, (time, action) in reversed([*enumerate(zip(times, actions, strict=True))])
    }
    return _to_bytes(rows.take(pa.array([first[key] for key in sorted(first)], pa.int64())))


def parse_archived(data: bytes, *, path: str = "<memory>", requested_time: str | None = None) -> list[ArchivedInstant]:
    """Parse a file of the archive: all instants, or those of one requested time, in the order of the rows.

    Raises: CorruptFileError if the content is not a Parquet file of archived instants.
    """
    table = _read(data, _SCHEMA.names[:-1], path)
    if requested_time is not None:
        table = table.filter(pc.equal(table[_SCHEMA.names[0]], requested_time))
    return [instant for instant in _instants(table) if instant.requested_time and instant.action]


def completion_times(data: bytes, *, path: str = "<memory>") -> dict[tuple[str, str], str]:
    """Return the completion times of a file's instants, by requested time and completed action.

    Only these three columns are decoded.

    Raises: CorruptFileError if the content is not a Parquet file of archived instants.
    """
    times, completed, actions = _read(data, _SCHEMA.names[:3], path).to_pydict().values()
    return {(time, action): end or time for time, end, action in zip(times, completed, actions, strict=True) if time}


def greatest_completion_time(file: pq.ParquetFile) -> str | None:
    """Return the greatest completion time of a file by its footer; None if the footer does not have it."""
    bounds = _bounds(file, _SCHEMA.names[1])
    return bounds[1] or None if bounds else None


def requested_range(file: pq.ParquetFile) -> tuple[str, str] | None:
    """Return the least and the greatest requested time of a file: by its footer, else by its rows; None: no rows."""
    bounds = _bounds(file, _SCHEMA.names[0])
    if bounds is None:
        times = [time for time in archived_columns(file)[0] if time]
        bounds = (min(times), max(times)) if times else None
    return bounds


def _bounds(file: pq.ParquetFile, name: str) -> tuple[str, str] | None:
    """Return the least and the greatest value of a column; None if the footer does not have them."""
    place, bounds = file.schema.names.index(name), []
    for group in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(group).column(place).statistics
        if statistics is None or not statistics.has_min_max or statistics.null_count:
            return None
        bounds.append((str(statistics.min), str(statistics.max)))
    return (min(first for first, _ in bounds), max(last for _, last in bounds)) if bounds else None


def archived_columns(file: pq.ParquetFile) -> list[list[str | None]]:
    """Return the requested times, the completion times and the actions of a file, in the order of its rows."""
    names = _SCHEMA.names[:3]
    table = _as_stored(file.read(columns=names), names)
    return [table[name].to_pylist() for name in names]


def archived_rows(file: pq.ParquetFile, wanted: Collection[int]) -> Iterator[tuple[int, ArchivedInstant]]:
    """Yield the rows with these numbers, each with its number; only row groups that have one of them are read."""
    names, first = _SCHEMA.names[:-1], 0
    for group in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        chosen = sorted(row for row in wanted if first <= row < first + count)
        if chosen:
            table = _as_stored(file.read_row_group(group, columns=names), names)
            taken = table.take(pa.array([row - first for row in chosen], pa.int64()))
            yield from zip(chosen, _instants(taken), strict=True)
        first += count


def _instants(rows: pa.Table) -> list[ArchivedInstant]:
    return [
        ArchivedInstant(
            requested_time=time, completion_time=completed or time, action=action, metadata=metadata, plan=plan
        )
        for time, completed, action, metadata, plan in zip(*rows.to_pydict().values(), strict=True)
    ]


def _read(data: bytes, names: list[str], path: str) -> pa.Table:
    """Read these columns and cast them to the types of the archive's schema."""
    try:
        return _as_stored(pq.read_table(pa.BufferReader(data), columns=names, page_checksum_verification=True), names)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise CorruptFileError(f"not a Parquet file of archived instants: {error}", path=path) from error


def _as_stored(table: pa.Table, names: list[str]) -> pa.Table:
    """Cast columns to the types of the archive's schema. Raises: ArrowException, KeyError."""
    table = table.select(names).cast(pa.schema([_SCHEMA.field(name) for name in names]))
    # Invalid UTF-8 raises here, not later when the text is used.
    table.validate(full=True)
    return table


def _to_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    # Only features that every Parquet reader supports: other engines and later releases read the archive.
    options = {"compression": "gzip", "use_dictionary": False, "store_schema": False, "write_page_checksum": True}
    with pq.ParquetWriter(sink, _SCHEMA, **options) as writer:
        writer.write_table(table, row_group_size=_ROW_GROUP_INSTANTS)
        writer.add_key_value_metadata({"parquet.avro.schema": json.dumps(_AVRO_SCHEMA, separators=(",", ":"))})
    return sink.getvalue()
