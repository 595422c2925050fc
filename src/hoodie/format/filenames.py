"""Names of data, log, marker and partition metadata files. Only this module builds and parses these names.

On-disk format: docs/format/table.md §3.1 (base files), §4.1 (log files), §5.3 (markers).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final
from uuid import UUID

PARTITION_METADATA_NAME: Final = ".hoodie_partition_metadata"
MARKER_TYPE_NAME: Final = "MARKERS.type"
UNKNOWN_WRITE_TOKEN: Final = "1-0-1"
METADATA_INIT_WRITE_TOKEN: Final = "0-0-0"
CDC_SUFFIX: Final = ".cdc"

_BASE = re.compile(r"(?P<file_id>[a-zA-Z0-9-]+)_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)\.(?P<ext>[a-zA-Z0-9]+)")
_LOG = re.compile(
    r"\.(?P<file_id>[^._/]+)_(?P<instant>[^./]*)\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+)(?P<suffix>\.cdc)?)?"
)
_NAMES_KEPT = 1 << 13
"""Parsed names of a kind that are kept: each commit lists the names of the last one, and a few new ones."""
_BUCKET_DIGITS = 8
_BUCKET = re.compile(r"[0-9]{8}(?![0-9])")
_MARKER = re.compile(r"(?P<data_file>.+)\.marker\.(?P<io_type>CREATE|MERGE|APPEND)", re.DOTALL)


class IoType(StrEnum):
    """Why a marker was written. On disk (end of the marker's name): do not change."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """Name of a base file: `<file id>_<write token>_<instant>.<extension>`."""

    file_id: str
    write_token: str
    instant_time: str
    extension: str = "parquet"

    @property
    def name(self) -> str:
        """The name without its folder."""
        return f"{self.file_id}_{self.write_token}_{self.instant_time}.{self.extension}"

    def __str__(self) -> str:
        return self.name

    @staticmethod
    @lru_cache(maxsize=_NAMES_KEPT)
    def parse(name: str) -> BaseFileName | None:
        """Parse a name without its folder; None if it is not the name of a base file."""
        match = _BASE.fullmatch(name)
        if match is None:
            return None
        return BaseFileName(match["file_id"], match["token"], match["instant"], match["ext"])


def base_name_parts(name: str) -> tuple[str, str] | None:
    """Return the file id and the instant in the name of a base file; None for other files. For listings of many files.

    >>> base_name_parts("a-0_0-1-2_20260101000000000.parquet"), base_name_parts(".a-0_1.log.1_0-1-2")
    (('a-0', '20260101000000000'), None)
    """
    match = _BASE.fullmatch(name)
    return None if match is None else (match["file_id"], match["instant"])


@dataclass(frozen=True, slots=True)
class LogFileName:
    """Name of a log file: `.<file id>_<instant>.log.<version>_<write token>[.cdc]`.

    `instant_time` is the base instant of the file slice in table version 6, and the instant of the delta commit that
    wrote the file in later versions. `write_token` is empty for files of old writers that wrote no write token.
    """

    file_id: str
    instant_time: str
    version: int
    write_token: str = UNKNOWN_WRITE_TOKEN
    suffix: str = ""

    @property
    def name(self) -> str:
        """The name without its folder."""
        token = f"_{self.write_token}{self.suffix}" if self.write_token else ""
        return f".{self.file_id}_{self.instant_time}.log.{self.version}{token}"

    @property
    def is_cdc(self) -> bool:
        """Whether the file holds change records, which a snapshot read never reads."""
        return self.suffix == CDC_SUFFIX

    @property
    def sort_key(self) -> tuple[str, int, str, str]:
        """Order of the log files of one file slice, oldest first."""
        return (self.instant_time, self.version, self.write_token, self.suffix)

    def __str__(self) -> str:
        return self.name

    @staticmethod
    @lru_cache(maxsize=_NAMES_KEPT)
    def parse(name: str) -> LogFileName | None:
        """Parse a name without its folder; None if it is not the name of a log file."""
        match = _LOG.fullmatch(name)
        if match is None:
            return None
        return LogFileName(
            match["file_id"],
            match["instant"],
            int(match["version"]),
            match["token"] or "",
            match["suffix"] or "",
        )


def name_of(path: str) -> str:
    """Return the last component of a path or URI: the name of a file or folder.

    >>> name_of("city=sf/1.parquet"), name_of("1.parquet")
    ('1.parquet', '1.parquet')
    """
    return path.rpartition("/")[2]


def parse_data_file(path: str) -> BaseFileName | LogFileName | None:
    """Parse the name of a base or log file, with or without its folder; None for other names."""
    name = name_of(path)
    return BaseFileName.parse(name) or LogFileName.parse(name)


def instant_of_data_file(path: str) -> str | None:
    """Return the instant in the name of a base or log file, with or without its folder; None for other names."""
    parsed = parse_data_file(path)
    return None if parsed is None else parsed.instant_time


def new_file_id(unique: UUID, ordinal: int) -> str:
    """Build the file id of a new file group: `<uuid>-<n>`, where n counts the files of one writer task from 0."""
    if ordinal < 0:
        raise ValueError(f"the ordinal of a file id counts from 0, got {ordinal}")
    return f"{unique}-{ordinal}"


def bucket_file_id(bucket: int, unique: UUID) -> str:
    """Build the file id of a bucket's file group: the bucket's number replaces the first eight characters of the uuid.

    >>> bucket_file_id(3, UUID("6f1c2f9b-4a5f-5f0b-9d0a-6e0c7a3e7d10"))
    '00000003-4a5f-5f0b-9d0a-6e0c7a3e7d10-0'
    """
    if not 0 <= bucket < 10**_BUCKET_DIGITS:
        raise ValueError(f"a bucket has a number of up to {_BUCKET_DIGITS} digits, got {bucket}")
    return new_file_id(unique, 0).replace(str(unique)[:_BUCKET_DIGITS], f"{bucket:0{_BUCKET_DIGITS}}", 1)


def bucket_of_file_id(file_id: str) -> int | None:
    """Return the bucket in a file id; None if its first eight characters are no number.

    >>> bucket_of_file_id("00000003-4a5f-5f0b-9d0a-6e0c7a3e7d10-0"), bucket_of_file_id("6f1c2f9b-4a5f-0")
    (3, None)
    """
    match = _BUCKET.match(file_id)
    return None if match is None else int(match[0])


def write_token(task_partition: int, stage_id: int, attempt_id: int) -> str:
    """Build a write token; two attempts to write the same file must have different write tokens."""
    return f"{task_partition}-{stage_id}-{attempt_id}"


def marker_name(file_name: str, io_type: IoType) -> str:
    """Return the name of a data file's marker; a relative path of the file gives the relative path of the marker."""
    return f"{file_name}.marker.{io_type.value}"


def parse_marker(name: str) -> tuple[str, IoType] | None:
    """Return the data file's name (or relative path) and the kind of write; None if `name` is not a marker name."""
    match = _MARKER.fullmatch(name)
    return None if match is None else (match["data_file"], IoType(match["io_type"]))
