"""hoodie.properties as a typed, frozen record that also keeps unknown properties.

On-disk format: docs/format/table.md §1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from hoodie.errors import CorruptFileError, InvalidConfigError, UnsupportedError
from hoodie.format.metadata_table.partition_names import FILES
from hoodie.format.table import table_keys as keys
from hoodie.format.table.key_generator import KeyGeneratorType, stored_key_generator
from hoodie.format.table.merge_config import (
    MergeMode,
    MergeRule,
    PartialUpdateMode,
    effective_merge_rule,
    merge_strategy_id,
    stored_merge_mode,
)
from hoodie.format.table.properties import java_date, parse_properties, properties_to_bytes, table_checksum
from hoodie.format.table.versions import VERSIONS, TableVersion


class TableType(StrEnum):
    """Type of a table, which decides how updates are stored. On disk: do not change."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class BaseFileFormat(StrEnum):
    """File format of base files. On disk: do not change."""

    PARQUET = "PARQUET"
    ORC = "ORC"
    HFILE = "HFILE"
    LANCE = "LANCE"

    @property
    def extension(self) -> str:
        """Extension of the names of such files, without the dot."""
        return self.value.lower()


class TimelineZone(StrEnum):
    """Time zone of instant times; LOCAL is the zone of the writer. On disk: do not change."""

    LOCAL = "LOCAL"
    UTC = "UTC"


_E = TypeVar("_E", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """A table's hoodie.properties.

    `raw` contains every stored property, unknown properties too. Do not change it: use `with_changes`.
    The other fields are read from `raw`. Field lists keep their stored order.
    """

    raw: Mapping[str, str] = field(repr=False, hash=False)
    name: str
    database: str | None
    table_type: TableType
    version: TableVersion
    initial_version: TableVersion | None
    record_key_fields: tuple[str, ...]
    """Empty if record keys are generated automatically."""
    partition_fields: tuple[str, ...]
    """Without the types; empty if the table is not partitioned."""
    partition_field_types: tuple[str, ...]
    """`SIMPLE` or `TIMESTAMP` for each partition field of a CUSTOM key generator; empty if no types are stored.
    The types in `TYPED_PARTITION_FIELDS` count if that property names the same fields."""
    ordering_fields: tuple[str, ...]
    key_generator: KeyGeneratorType
    timestamp_options: Mapping[str, str] = field(hash=False)
    """Stored options of the timestamp key generator without their prefix, such as `output.dateformat`."""
    is_hive_style: bool
    is_url_encoded: bool
    has_slash_separated_dates: bool
    drops_partition_columns: bool
    populates_meta_fields: bool
    base_file_format: BaseFileFormat
    merge_mode: MergeMode
    """The stored mode; merges use `merge_rule.mode`."""
    merge_rule: MergeRule
    merge_strategy_id: str | None
    payload_class: str | None
    legacy_payload_class: str | None
    timezone: TimelineZone
    timeline_path: str
    """Relative to `.hoodie`; ignored on version 6."""
    history_path: str
    """Relative to the timeline folder; ignored on version 6."""
    archive_folder: str
    """Relative to `.hoodie`; used on version 6."""
    metadata_partitions: tuple[str, ...]
    metadata_partitions_inflight: tuple[str, ...]
    index_definitions_path: str | None
    """Relative to the base path."""
    is_cdc_enabled: bool
    cdc_logging_mode: str
    create_schema: str | None
    bootstrap_base_path: str | None

    @property
    def archive_name(self) -> str:
        """The folder of the archived timeline, in `.hoodie` (version 6), else in the folder of the timeline."""
        return self.history_path if self.version.has_completion_time_in_name else self.archive_folder

    @classmethod
    def parse(cls, data: bytes, *, path: str = "hoodie.properties") -> TableConfig:
        """Parse and check hoodie.properties; `path` appears in error messages.

        Raises:
            CorruptFileError: a required property is missing or is not a number, or the checksum is wrong.
            InvalidConfigError: the value of a property is invalid.
            UnsupportedError: hoodie does not support the table version, the table format or the key generator type.
        """
        raw = parse_properties(data, path=path)
        _check_complete(raw, path)
        return cls.from_properties(raw, path=path)

    @classmethod
    def from_properties(cls, raw: Mapping[str, str], *, path: str = "hoodie.properties") -> TableConfig:
        """Read the typed fields from properties that contain at least name, type, version and layout version.

        Raises:
            InvalidConfigError: the value of a property is invalid.
            UnsupportedError: hoodie does not support the table version, the table format or the key generator type.
        """
        values = _Values(raw, path)
        version = TableVersion.of(values.number(keys.VERSION), path=path)
        values.expect_native_format()
        values.expect_layout(version)
        initial = values.number(keys.INITIAL_VERSION) if raw.get(keys.INITIAL_VERSION) else None
        record_key_fields = values.items(keys.RECORD_KEY_FIELDS)
        partition_fields, partition_field_types = split_types(values.items(keys.PARTITION_FIELDS))
        typed_fields, own_types = split_types(values.items(keys.TYPED_PARTITION_FIELDS))
        if not partition_field_types and typed_fields == partition_fields:
            partition_field_types = own_types
        ordering_fields = values.items(keys.ORDERING_FIELDS) or values.items(keys.PRECOMBINE_FIELD)
        old_format = values.choice(keys.OLD_BASE_FILE_FORMAT, BaseFileFormat, BaseFileFormat.PARQUET)
        merge_mode = stored_merge_mode(version, raw, has_ordering=bool(ordering_fields), path=path)
        return cls(
            raw=dict(raw),
            name=raw[keys.NAME],
            database=raw.get(keys.DATABASE) or None,
            table_type=values.choice(keys.TYPE, TableType, TableType.COPY_ON_WRITE),
            version=version,
            initial_version=next((version for version in VERSIONS if version.value == initial), None),
            record_key_fields=record_key_fields,
            partition_fields=partition_fields,
            partition_field_types=partition_field_types,
            ordering_fields=ordering_fields,
            key_generator=stored_key_generator(
                raw, record_key_fields=record_key_fields, partition_fields=partition_fields, path=path
            ),
            timestamp_options=_timestamp_options(raw),
            is_hive_style=values.flag(keys.HIVE_STYLE, default=False),
            is_url_encoded=values.flag(keys.URL_ENCODE, default=False),
            has_slash_separated_dates=values.flag(keys.SLASH_SEPARATED_DATES, default=False),
            drops_partition_columns=values.flag(keys.DROP_PARTITION_COLUMNS, default=False),
            populates_meta_fields=values.flag(keys.POPULATE_META_FIELDS, default=True),
            base_file_format=values.choice(keys.BASE_FILE_FORMAT, BaseFileFormat, old_format),
            merge_mode=merge_mode,
            merge_rule=effective_merge_rule(merge_mode, raw, path=path),
            merge_strategy_id=merge_strategy_id(raw),
            payload_class=raw.get(keys.PAYLOAD_CLASS) or None,
            legacy_payload_class=raw.get(keys.LEGACY_PAYLOAD_CLASS) or None,
            timezone=values.choice(keys.TIMEZONE, TimelineZone, TimelineZone.LOCAL),
            timeline_path=values.folder(keys.TIMELINE_PATH, "timeline"),
            history_path=values.folder(keys.HISTORY_PATH, "history"),
            archive_folder=values.folder(keys.ARCHIVE_FOLDER, "archived"),
            metadata_partitions=values.folder_names(keys.METADATA_PARTITIONS),
            metadata_partitions_inflight=values.folder_names(keys.METADATA_PARTITIONS_INFLIGHT),
            index_definitions_path=raw.get(keys.INDEX_DEFINITIONS_PATH) or None,
            is_cdc_enabled=values.flag(keys.CDC_ENABLED, default=False),
            cdc_logging_mode=(raw.get(keys.CDC_LOGGING_MODE) or "DATA_BEFORE_AFTER").upper(),
            create_schema=raw.get(keys.CREATE_SCHEMA) or None,
            bootstrap_base_path=raw.get(keys.BOOTSTRAP_BASE_PATH) or None,
        )

    @property
    def may_have_slice_logs(self) -> bool:
        """Whether the table can have log files of version 6, whose names have the base instant of their slice."""
        first = self.initial_version
        return self.version.log_name_has_base_instant or first is None or first.log_name_has_base_instant

    @property
    def archive_names_are_ranges(self) -> bool:
        """Whether archived files are named by the range of their instants: those of an upgraded table may not be."""
        return not self.may_have_slice_logs

    @property
    def names_no_payload(self) -> bool:
        """Whether writes name the payload class: Hudi 0.x stores none in copy-on-write tables (§6.2)."""
        is_copied = self.table_type is TableType.COPY_ON_WRITE
        return is_copied and self.payload_class is None and not self.version.stores_merge_mode

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The partition columns that data files do not have: their values are in the partition path only."""
        return self.partition_fields if self.drops_partition_columns else ()

    @property
    def partial_update_mode(self) -> PartialUpdateMode | None:
        """Rule by which the kept record takes single fields from the other record; None: it takes no fields."""
        return self.merge_rule.partial_update_mode

    @property
    def has_metadata_table(self) -> bool:
        """Whether readers use the metadata table: the properties list the metadata partition `files` as complete."""
        return FILES in self.metadata_partitions

    def to_bytes(self, now: datetime) -> bytes:
        """Return the content of hoodie.properties with the correct checksum, in the order of `raw`.

        As in the JVM, the first comment shows whether the stored checksum was already correct.
        """
        checksum = str(table_checksum(self.database, self.name))
        done = "Updated at" if self.raw.get(keys.CHECKSUM) == checksum else "Properties saved on"
        instant = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        comments = (f"{done} {instant}", java_date(now))
        return properties_to_bytes({**self.raw, keys.CHECKSUM: checksum}, comments)

    def with_changes(self, **changes: str | None) -> TableConfig:
        """Return a copy with changed properties; a property whose new value is None is removed.

        Pass property names as `config.with_changes(**{"hoodie.table.cdc.enabled": "true"})`.

        Raises: InvalidConfigError if a value is invalid, or a property that every table requires would be removed.
        """
        merged = {**self.raw, **changes}
        raw = {key: value for key, value in merged.items() if value is not None}
        missing = [key for key in _NEEDED if not raw.get(key)]
        if missing:
            raise InvalidConfigError(f"{self.name}: every table requires {', '.join(missing)}; set a value")
        return TableConfig.from_properties(raw, path=f"{self.name}: hoodie.properties")


_NATIVE_FORMAT = "native"
_DIGITS_MAX = 9
_NEEDED = (keys.NAME, keys.TYPE, keys.VERSION, keys.LAYOUT_VERSION)


def _check_complete(raw: Mapping[str, str], path: str) -> None:
    missing = [key for key in _NEEDED if not raw.get(key, "").strip()]
    if missing:
        advice = "if hoodie.properties.backup exists in the same folder, an update was interrupted: restore the backup"
        raise CorruptFileError(f"expected the properties {', '.join(missing)}, found none; {advice}", path=path)
    for key in (keys.VERSION, keys.LAYOUT_VERSION):
        if not (raw[key].strip().isascii() and raw[key].strip().isdigit()):
            raise CorruptFileError(f"{key}: a number expected, found {raw[key][:100]!r}", path=path)
    stored = raw.get(keys.CHECKSUM)
    expected = table_checksum(raw.get(keys.DATABASE), raw[keys.NAME])
    if stored is not None and stored.strip() != str(expected):
        what = f"checksum {expected} of database {raw.get(keys.DATABASE) or ''!r} and table {raw[keys.NAME]!r} expected"
        advice = "restore hoodie.properties from its backup, or set both names back to what they were"
        raise CorruptFileError(f"{what}, found {stored!r}; {advice}", path=path)


@dataclass(frozen=True, slots=True)
class _Values:
    """Typed access to properties; errors name the file and the property."""

    raw: Mapping[str, str]
    path: str

    def number(self, key: str) -> int:
        text = self.raw.get(key, "").strip()
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
            expected = f"a number of at most {_DIGITS_MAX} digits expected"
            raise InvalidConfigError(f"{self.path}: {key}: {expected}, found {text[:100]!r}")
        return int(text)

    def folder(self, key: str, default: str) -> str:
        """Return a relative path below the folder that it is relative to."""
        text = (self.raw.get(key) or default).removesuffix("/")
        if text.startswith("/") or any(part in ("", ".", "..") for part in text.split("/")) or ":" in text:
            expected = f"a folder of the table such as {default} expected"
            raise InvalidConfigError(f"{self.path}: {key}: {expected}, found {text[:100]!r}; correct the property")
        return text

    def flag(self, key: str, *, default: bool) -> bool:
        text = self.raw.get(key, "").strip().lower()
        if text not in ("", "true", "false"):
            raise InvalidConfigError(f"{self.path}: {key}: true or false expected, found {self.raw[key][:100]!r}")
        return text == "true" if text else default

    def items(self, key: str) -> tuple[str, ...]:
        return split_items(self.raw.get(key, ""))

    def folder_names(self, key: str) -> tuple[str, ...]:
        """Return names of folders: they are deleted with all their content when a metadata partition is dropped."""
        names = self.items(key)
        wrong = [name for name in names if "/" in name or "\0" in name or name.startswith(".")]
        if wrong:
            expected = "names of metadata partitions such as files expected"
            raise InvalidConfigError(f"{self.path}: {key}: {expected}, found {wrong[0][:100]!r}; correct the property")
        return names

    def choice(self, key: str, choices: type[_E], default: _E) -> _E:
        text = self.raw.get(key, "").strip().upper()
        if not text:
            return default
        try:
            return choices(text)
        except ValueError:
            expected = ", ".join(choices)
            raise InvalidConfigError(f"{self.path}: {key}: one of {expected} expected, found {text[:100]!r}") from None

    def expect_native_format(self) -> None:
        found = self.raw.get(keys.TABLE_FORMAT, "").strip()
        if found.lower() not in ("", _NATIVE_FORMAT):
            expected = f"{keys.TABLE_FORMAT}={_NATIVE_FORMAT} expected, found {found!r}"
            advice = "hoodie reads Hudi's own timeline only; use JVM Hudi with the plug-in of this format"
            raise UnsupportedError(f"{self.path}: {expected}; {advice}")

    def expect_layout(self, version: TableVersion) -> None:
        found = self.number(keys.LAYOUT_VERSION)
        if found != version.layout_version:
            expected = f"{keys.LAYOUT_VERSION}={version.layout_version} for table version {version.value} expected"
            advice = "an upgrade or downgrade was interrupted: run it again with the Hudi release that began it"
            raise InvalidConfigError(f"{self.path}: {expected}, found {found}; {advice}")


def split_items(text: str) -> tuple[str, ...]:
    """Split a list of fields at its commas."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def split_types(fields: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split `field:TYPE` items; the types are empty unless every field has one."""
    split = [item.partition(":") for item in fields]
    types = tuple(kind.strip().upper() for _, _, kind in split)
    return tuple(name.strip() for name, _, _ in split), types if all(types) else ()


def typed_items(names: Sequence[str], types: Sequence[str]) -> tuple[str, ...]:
    """Return `field:TYPE` items, the opposite of `split_types`."""
    return tuple(f"{name}:{kind}" for name, kind in zip(names, types, strict=True))


def _timestamp_options(raw: Mapping[str, str]) -> dict[str, str]:
    """Return the options without their prefix; an option with the new prefix replaces one with the old prefix."""
    found: dict[str, str] = {}
    for prefix in (keys.OLD_TIMEBASED_PREFIX, keys.TIMEBASED_PREFIX):
        found |= {key[len(prefix) :]: value for key, value in raw.items() if key.startswith(prefix)}
    return found
