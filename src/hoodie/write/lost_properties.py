"""Rebuild a lost hoodie.properties from the timeline, the metadata table, and the names and first rows of data files.

`hoodie.rebuild_properties`, and `hoodie repair` of a table without the file and its backup. A property is found if
files prove it, given by the caller, or a guess, which the result names. Before anything is written, the keys and paths
that the new properties make of stored rows are compared with the stored ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config import indexes, writes
from hoodie.display import counted
from hoodie.errors import HoodieError, InvalidConfigError, TableExistsError, TableNotFoundError, UnsupportedError
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.files.table_properties import PROPERTIES, create_table_config, table_exists, version_of_timeline
from hoodie.format.filenames import PARTITION_METADATA_NAME, BaseFileName, LogFileName, bucket_of_file_id
from hoodie.format.instants.archive_log import archive_log_number
from hoodie.format.table import table_keys as keys
from hoodie.format.table.merge_config import DEFAULT_PAYLOAD_CLASS
from hoodie.format.table.properties import parse_properties
from hoodie.format.table.table_config import TableConfig, TimelineZone
from hoodie.format.table.table_creation import NewTable, new_table_config
from hoodie.format.table.versions import TableVersion
from hoodie.index import PARTITIONED_RECORD, RECORD
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import INDEX_DEFINITIONS, METADATA_FOLDER, METADATA_PROPERTIES
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.results import ServiceResult
from hoodie.storage import Store
from hoodie.timeline import HOODIE_FOLDER, Action, State, layout_of, ms_of_instant_time
from hoodie.view.listing import list_from_storage
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.create import CreateOptions, table_config

OPERATION: Final = "rebuild properties"
_FILES_READ: Final = 5
_ROWS: Final = 1000
"""Rows of a base file that are compared: the first ones, of the smallest files of some partitions."""
_AUTOMATIC_KEY: Final = r"^\d{17}_\d+_\d+$"
_KEY_FIELD: Final = re.compile(r"(?:^|,)([^:,]+):")
_MOST_BUCKETS: Final = 100_000
"""One random file id in 40 begins with eight digits, but only one in 40,000 with a number below this."""
_ENCODED: Final = re.compile(r"%[0-9A-F]{2}")
_SUFFIX: Final = "_metadata"
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RebuiltProperties(ServiceResult):
    """The properties that were, or would be, written; none if something is `missing`, which the caller must give."""

    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    missing: tuple[str, ...] = ()


def rebuild_properties(store: Store, given: CreateOptions, *, dry_run: bool) -> RebuiltProperties:
    """Write the properties of a table that lost them; with `dry_run` only list them, and what is a guess or missing.

    `given`: facts from the caller. None for columns that are not known, an empty list if there are none. It costs one
    listing of the folder, and reads the first rows of up to five base files.

    Raises:
        TableNotFoundError: the folder has no timeline of a table.
        TableExistsError: the properties or their backup are there.
        InvalidConfigError: something must be given; or given columns do not make the stored keys or paths.
        UnsupportedError: a table without meta fields.
    """
    if table_exists(store):
        raise TableExistsError(f"{store.uri('')} has {PROPERTIES} or its backup: t.repair() mends a damaged file")
    files = _Files.of(store)
    found = _Found(files, given)
    wanted = found.wanted()
    if found.missing:
        if not dry_run:
            raise InvalidConfigError(f"{store.uri('')}: nothing was written; must be given: {'; '.join(found.missing)}")
        notes = (*(f"must be given: {text}" for text in found.missing), *found.notes)
        return RebuiltProperties(operation=OPERATION, dry_run=True, notes=notes, missing=tuple(found.missing))
    config = files.named_in(table_config(files.schema, wanted, default_name="table"))
    files.check_keys(config)
    if not dry_run:
        create_table_config(store, config)
    return RebuiltProperties(
        operation=OPERATION,
        counts={"properties_written": len(config.raw)},
        dry_run=dry_run,
        notes=tuple(found.notes),
        properties=dict(config.raw),
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """What the files of a table show: its view without properties, its listing, and the first rows of some files."""

    view: TableView
    identity: Mapping[str, str]
    """The properties of the metadata table; empty without one."""
    listing: Mapping[str, Mapping[str, int]]
    schema: pa.Schema
    samples: tuple[pa.RecordBatch, ...]

    @classmethod
    def of(cls, store: Store) -> _Files:
        """Read the files. Raises: as `rebuild_properties`."""
        where = store.uri("")
        try:
            identity = parse_properties(store.read(METADATA_PROPERTIES), path=store.uri(METADATA_PROPERTIES))
        except FileNotFoundError:
            identity = {}
        version = version_of_timeline(store)
        if version is None:
            raise TableNotFoundError(
                f"{where} is not a Hudi table: expected {PROPERTIES}, or instants in {HOODIE_FOLDER}/timeline, or in "
                f"{HOODIE_FOLDER} (version 6), to rebuild it from"
            )
        # Without a metadata table the version is unknown: versions 8 and 9 have the same files.
        if version.has_completion_time_in_name and keys.VERSION in identity:
            version = TableVersion.of(int(identity[keys.VERSION]))
        config = new_table_config(NewTable(name="table", version=version, timezone=TimelineZone.UTC))
        layout = layout_of(config)
        state = TableState(store)
        view = TableView(state, config, layout, state.load_timeline(config, layout))
        listing = list_from_storage(store, config, view.timeline, view.archive())
        return cls(view, identity, listing, view.schema().arrow, _samples(store, listing))

    @property
    def partition_paths(self) -> list[str]:
        """The partitions that have files."""
        return [path for path, names in self.listing.items() if names]

    @property
    def has_logs(self) -> bool:
        """Whether a file slice has log files, or a delta commit or compaction is on the timeline."""
        logs = (LogFileName.parse(name) for names in self.listing.values() for name in names)
        actions = {Action.DELTA_COMMIT, Action.COMPACTION, Action.LOG_COMPACTION}
        by_name = any(log is not None and not log.is_cdc for log in logs)
        return by_name or any(found.action in actions for found in self.view.timeline)

    @property
    def metadata_partitions(self) -> list[str]:
        """The partitions of the metadata table that have files; while one is built, only the listing."""
        store = self.view.store
        if not self.identity:
            return []
        if any(found.action is Action.INDEXING for found in self.view.timeline.pending()):
            return [kind.name for kind in KINDS.required]
        names = [folder.rpartition("/")[2] for folder in store.folders(METADATA_FOLDER)]
        return [
            name
            for name in names
            if not name.startswith(".") and set(store.names(f"{METADATA_FOLDER}/{name}")) - {PARTITION_METADATA_NAME}
        ]

    def named_in(self, config: TableConfig) -> TableConfig:
        """Return the properties of a new table with those that its files need."""
        partitions = self.metadata_partitions
        changes = {keys.METADATA_PARTITIONS: ",".join(sorted(partitions)), keys.METADATA_PARTITIONS_INFLIGHT: ""}
        version = self.view.config.version
        written = [kind for kind in KINDS.built if kind.name in partitions and kind.is_written_in(version)]
        changes |= {kind.switch.key: "true" for kind in written if kind.switch}
        if any(kind.readers_need_definition for kind in KINDS.maintained(partitions).values()):
            changes[keys.INDEX_DEFINITIONS_PATH] = INDEX_DEFINITIONS
        if (archive := self._archive_of_version_6()) is not None:
            changes[keys.ARCHIVE_FOLDER] = archive
        columns = {name.split(".")[0] for name in config.partition_fields}
        if any(not columns <= {*batch.schema.names} for batch in self.samples):
            changes[keys.DROP_PARTITION_COLUMNS] = "true"
        return config.with_changes(**changes)

    def _archive_of_version_6(self) -> str | None:
        """Return the folder with archive files: `archived`, of JVM Hudi 1.1 and later `history`. None without one."""
        store = self.view.store
        folders = store.folders(HOODIE_FOLDER) if not self.view.config.version.has_completion_time_in_name else []
        has_logs = (path for path in folders if any(archive_log_number(name) for name in store.names(path)))
        return next((path.rpartition("/")[2] for path in has_logs), None)

    def check_keys(self, config: TableConfig) -> None:
        """Compare the keys and paths of stored rows with those that the properties make. Raises: InvalidConfigError."""
        generator = table_key_generator(config)
        for batch in self.samples:
            made: list[tuple[str, tuple[str, ...], str]] = []
            if config.record_key_fields:
                made.append(("record_key", config.record_key_fields, RECORD_KEY))
            if not config.drops_partition_columns:
                made.append(("partition_by", config.partition_fields, PARTITION_PATH))
            for argument, fields, column in made:
                try:
                    found = generator.record_keys(batch) if column == RECORD_KEY else generator.partition_paths(batch)
                except HoodieError as error:
                    text = f"{argument}={list(fields)} does not fit the stored rows: {error}"
                    raise InvalidConfigError(text) from error
                stored = batch.column(column).cast(pa.string())
                if not found.equals(stored):
                    raise InvalidConfigError(
                        f"{argument}={list(fields)}: expected the stored {column} {stored[0].as_py()!r}, found "
                        f"{found[0].as_py()!r}; give other columns, or the options of the table's key generator"
                    )


@dataclass(slots=True)
class _Found:
    """The arguments of a new table that are found or given. `notes` name the place where each was found."""

    files: _Files
    given: CreateOptions
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def wanted(self) -> CreateOptions:
        """Return the arguments; `missing` has those that must be given."""
        record_key = self._record_key()
        partition_by, is_hive_style = self._partition_by()
        version = self.files.view.config.version
        if self.given.ordering is None and record_key != ():
            self.missing.append("the ordering columns, or that there are none (ordering=, --ordering or --no-ordering)")
        if self.given.ordering:
            by_mode, by_payload = (keys.MERGE_MODE, "EVENT_TIME_ORDERING"), (keys.PAYLOAD_CLASS, DEFAULT_PAYLOAD_CLASS)
            rule = "=".join(by_mode if version.stores_merge_mode else by_payload)
            self.notes.append(f"guess: {rule}: no file contains the merge mode")
        properties = {
            keys.HIVE_STYLE: str(is_hive_style).lower(),
            keys.URL_ENCODE: str(any(map(_ENCODED.search, self.files.partition_paths))).lower(),
            keys.TIMEZONE: self._timezone(),
            **{key: self.files.identity[key] for key in (keys.DATABASE,) if key in self.files.identity},
        }
        return replace(
            self.given,
            table_version=version.value,
            record_key=record_key,
            partition_by=partition_by,
            type="merge_on_read" if self.files.has_logs else "copy_on_write",
            index=self._index(),
            name=self._name(),
            properties={**properties, **self._key_encoding(record_key, partition_by), **self.given.properties},
        )

    def _key_encoding(
        self, record_key: str | Sequence[str] | None, partition_by: str | Sequence[str] | None
    ) -> dict[str, str]:
        """Return the option for the encoding of complex keys of one field, if the version has two encodings."""
        keys_, paths = ((found,) if isinstance(found, str) else found or () for found in (record_key, partition_by))
        is_complex = len(keys_) == 1 and (len(paths) > 1 or self.given.key_generator is not None)
        if not is_complex or self.files.view.config.version.names_single_complex_key or not self.files.samples:
            return {}
        first = self.files.samples[0].column(RECORD_KEY)[0].as_py()
        return {} if first.startswith(f"{keys_[0]}:") else {writes.NEW_KEY_ENCODING.key: "true"}

    def _record_key(self) -> str | Sequence[str] | None:
        if self.given.record_key is not None:
            return self.given.record_key
        found = _key_columns(self.files.samples)
        if found is None:
            self.missing.append("the record key columns (record_key=, --key): stored rows do not name them")
        else:
            rows = counted(sum(batch.num_rows for batch in self.files.samples), "rows")
            self.notes.append(f"record key {', '.join(found) or 'automatic'}: the stored keys of {rows}")
        return found

    def _partition_by(self) -> tuple[str | Sequence[str] | None, bool]:
        paths = self.files.partition_paths
        hive = bool(paths) and all("=" in part for path in paths for part in path.split("/"))
        if self.given.partition_by is not None:
            return self.given.partition_by, hive or not any(paths)
        if not any(paths):
            self.notes.append("no partition columns: the files are in the table's folder")
            return (), True
        found = _partition_columns(paths, self.files.samples, is_hive_style=hive)
        if found is None:
            self.missing.append(
                f"the partition columns (partition_by=, --partition-by): {paths[0]!r} is a partition path"
            )
        else:
            self.notes.append(f"partition columns {', '.join(found)}: the partition path {paths[0]!r}")
        return found, hive

    def _name(self) -> str | None:
        if self.given.name is None and keys.NAME in self.files.identity:
            return self.files.identity[keys.NAME].removesuffix(_SUFFIX)
        if self.given.name is None:
            self.notes.append("guess: the table has the name of its folder")
        return self.given.name

    def _index(self) -> str | None:
        if self.given.index is not None:
            return self.given.index
        if RECORD.needs_one_of(self.files.metadata_partitions):
            return (PARTITIONED_RECORD if is_partitioned_record_index(self.files.view.store) else RECORD).name
        bases = [BaseFileName.parse(name) for names in self.files.listing.values() for name in names]
        greatest = greatest_bucket(base.file_id for base in bases if base is not None)
        if greatest is not None:
            key = indexes.BUCKET_COUNT.key
            if key not in self.given.properties:
                self.missing.append(f"the number of buckets (properties=, --option {key}=N): at least {greatest + 1}")
            return "bucket"
        self.notes.append("guess: the index is simple (index=, --index)")
        return "simple"

    def _timezone(self) -> str:
        """Return the zone in which the completion times are those at which the files were written."""
        view = self.files.view
        if keys.TIMEZONE in self.given.properties:
            return self.given.properties[keys.TIMEZONE]
        for info in view.store.list(view.layout.instant_folder()):
            instant = view.layout.parse(info)
            # In version 6 the file's change time is the completion time: the time in its name is the requested time.
            is_named = instant is not None and view.layout.names_completion_time
            time = None if instant is None else instant.completion_time if is_named else instant.requested_time
            if instant is None or not time or not (is_named or instant.state is State.REQUESTED):
                continue
            late_ms = info.modified_ms - ms_of_instant_time(time, TimelineZone.UTC)
            if abs(late_ms) < 10 * _MINUTE_MS:
                return "utc"
            if abs(late_ms) < 15 * 60 * _MINUTE_MS and (late_ms + 5 * _MINUTE_MS) % (15 * _MINUTE_MS) < 10 * _MINUTE_MS:
                self.notes.append(
                    f"guess: {keys.TIMEZONE}=LOCAL: the files are {late_ms / 3_600_000:+.1f} h from their instants; if "
                    f"they were copied later, give {keys.TIMEZONE}=UTC (properties=, --option)"
                )
                return "local"
        self.notes.append(f"guess: {keys.TIMEZONE}=UTC: the files are younger than their instants")
        return "utc"


def _samples(store: Store, listing: Mapping[str, Mapping[str, int]]) -> tuple[pa.RecordBatch, ...]:
    """Read the first rows of the smallest base file of some partitions. A file that cannot be read is left out."""
    smallest: list[BaseFile] = []
    for path, names in listing.items():
        parsed = {name: base for name in names if (base := BaseFileName.parse(name)) is not None}
        if parsed:
            name = min(parsed, key=lambda name: (names[name], name))
            smallest.append(BaseFile(path, name, parsed[name].file_id, parsed[name].instant_time, names[name]))
    found = []
    for file in sorted(smallest, key=lambda file: file.size_bytes):
        try:
            with open_base_file(store, file) as (parquet, _):
                batch = next(parquet.iter_batches(batch_size=_ROWS), None)
        except HoodieError:
            continue
        if batch is None:
            continue
        if not {RECORD_KEY, PARTITION_PATH} <= {*batch.schema.names}:
            raise UnsupportedError(
                f"{store.uri(file.path)} has no columns {RECORD_KEY} and {PARTITION_PATH}: this release does not "
                "rebuild the properties of a table without meta fields; restore hoodie.properties from a copy"
            )
        found.append(batch)
        if len(found) == _FILES_READ:
            break
    return tuple(found)


def greatest_bucket(file_ids: Iterable[str]) -> int | None:
    """Return the greatest bucket in these file ids; None if one of them, or all by chance, names no bucket.

    >>> greatest_bucket(["00000003-4a5f-0", "00000001-77aa-0"]), greatest_bucket(["60133518-4a5f-0"])
    (3, None)
    """
    buckets = [bucket_of_file_id(file_id) for file_id in file_ids]
    known = [bucket for bucket in buckets if bucket is not None and bucket < _MOST_BUCKETS]
    return max(known) if known and len(known) == len(buckets) else None


def _key_columns(samples: Sequence[pa.RecordBatch]) -> tuple[str, ...] | None:
    """Return the columns whose values are the stored keys; empty for automatic keys, None if that is not clear."""
    if not samples:
        return None
    stored = [batch.column(RECORD_KEY).cast(pa.string()) for batch in samples]
    if all(pc.all(pc.match_substring_regex(column, _AUTOMATIC_KEY)).as_py() for column in stored):
        return ()
    names = _equal_columns(samples, stored)
    if len(names) == 1:
        return (names[0],)
    fields = tuple(_KEY_FIELD.findall(stored[0][0].as_py() or ""))
    return fields if not names and fields and {*fields} <= {*samples[0].schema.names} else None


def _partition_columns(
    paths: Sequence[str], samples: Sequence[pa.RecordBatch], *, is_hive_style: bool
) -> tuple[str, ...] | None:
    """Return the columns whose values are the parts of the paths; None if that is not clear."""
    if is_hive_style:
        columns = {tuple(part.partition("=")[0] for part in path.split("/")) for path in paths}
        return columns.pop() if len(columns) == 1 else None
    depths = {path.count("/") + 1 for path in paths}
    if len(depths) != 1 or not samples:
        return None
    found = []
    for place in range(depths.pop()):
        parts = [pc.list_element(pc.split_pattern(batch.column(PARTITION_PATH), "/"), place) for batch in samples]
        names = _equal_columns(samples, parts)
        if len(names) != 1:
            return None
        found.append(names[0])
    return tuple(found)


def _equal_columns(samples: Sequence[pa.RecordBatch], texts: Sequence[pa.Array]) -> list[str]:
    """Return the columns whose values, as text, are these of every sample."""
    pairs = list(zip(samples, [text.cast(pa.string()) for text in texts], strict=True))
    names = (name for name in samples[0].schema.names if not name.startswith("_hoodie_"))
    return [name for name in names if all(_text(batch, name) == text for batch, text in pairs)]


def _text(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    try:
        return None if name not in batch.schema.names else batch.column(name).cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
