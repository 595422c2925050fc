"""Adopt files where they are: a skeleton file with the meta columns for each, and the bootstrap index, in one commit.

JVM Hudi calls this a metadata-only bootstrap. On-disk format: docs/format/table.md §3.9.
"""

from __future__ import annotations

import posixpath
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.commit.write_instant import write_instant
from hoodie.display import counted
from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CommitConflictError, HoodieError
from hoodie.files.base_file import BaseFileWriter, ParquetOptions
from hoodie.files.markers import write_marker
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.slices import join_path
from hoodie.files.stamping import COMMIT_TIME, FILE_NAME, SEQUENCE_NUMBER, SequenceNumbers
from hoodie.format.bootstrap_index import (
    BY_FILE_ID,
    BY_PARTITION,
    INSTANT,
    SkeletonSource,
    index_by_file_id,
    index_by_partition,
)
from hoodie.format.filenames import BaseFileName, IoType
from hoodie.format.instants.commit_metadata import WriteOperation, WriteStat
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.index import table_index
from hoodie.metadata.kinds.registry import parquet_options
from hoodie.progress import PhaseTimes
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator, table_key_generator
from hoodie.storage import Store, explained
from hoodie.timeline import Action
from hoodie.view.slices import data_table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.adopting.source_files import SourceFile
from hoodie.write.adopting.source_rows import SourceRows, path_scalars
from hoodie.write.files.context import stat_of
from hoodie.write.result import WRITE_PHASES, WriteResult

DEFAULT_INDEX: Final = "simple"
_INDEXES: Final = frozenset({"simple", "global_simple", "bloom", "global_bloom"})
"""Indexes that find keys in the skeleton files themselves."""


def bootstrapped_config(config: TableConfig, folder: Store) -> TableConfig:
    """Return the properties of a table of skeleton files of the files in a folder."""
    return config.with_changes(
        **{
            keys.BOOTSTRAP_BASE_PATH: folder.spec.uri,
            keys.BOOTSTRAP_INDEX_ENABLE: "true",
            keys.BOOTSTRAP_INDEX_TYPE: "HFILE",
        }
    )


def problems_of(rows: SourceRows, config: TableConfig) -> tuple[str, ...]:
    """Return why the files cannot stay where they are; nothing is read."""
    found = []
    index = table_index(config).name
    if index not in _INDEXES:
        found.append(f"index={index!r}: skeleton files have one of {', '.join(sorted(_INDEXES))}")
    if not config.record_key_fields:
        found.append("mode='metadata_only' requires record_key: automatic keys are keys of rows that are written")
    if wanted := sorted(key for key in config.raw if key.startswith("hoodie.metadata.index.")):
        found.append(f"{wanted[0]}: skeleton files have no columns to index; omit it")
    if found:
        return tuple(found)
    generator = table_key_generator(config)
    types = {child.name: child.type for child in rows.schema}
    for file in rows.files:
        if problem := _problem(file, rows, generator, types):
            found.append(f"{file.path}: {problem}; rewrite the files (mode='rewrite')")
    return tuple(found)


def notes_of(source: str, files: Sequence[SourceFile]) -> tuple[str, ...]:
    """Return what such a table costs and cannot."""
    cost = (
        f"the rows stay in {source}: keep these files unchanged; a read of a file opens its skeleton file too "
        f"({counted(2 * len(files), 'files')} for the whole table), until an update rewrites it; other readers than "
        "hoodie and JVM Hudi do not read such a table"
    )
    if not any(file.int96 for file in files):
        return (cost,)
    return cost, "JVM Hudi cannot update rows of files with times of the type INT96, which these files have"


def _problem(file: SourceFile, rows: SourceRows, generator: KeyGenerator, types: dict[str, pa.DataType]) -> str | None:
    if file.replaced:
        return f"the columns {list(file.replaced)} are those of folders or of Hudi, and readers would take the file's"
    if file.untyped:
        return f"column {file.untyped[0]!r} has the type null, in the table {types[file.untyped[0]]}"
    other = [child for child in file.schema if types[child.name] != child.type]
    if other:
        return f"column {other[0].name!r} is {other[0].type}, in the table {types[other[0].name]}"
    folder = posixpath.dirname(file.path)
    given = path_scalars(file, rows.schema)
    if missing := [name for name in generator.partition_fields if name not in given]:
        return f"expected a folder {missing[0]}=…, whose name has the value of the partition column"
    try:
        columns = {name: pa.array([value.as_py()], value.type) for name, value in given.items()}
        batch = pa.RecordBatch.from_pydict(columns) if columns else pa.RecordBatch.from_pydict({"": pa.nulls(1)})
        path = generator.partition_paths(batch)[0].as_py()
    except HoodieError as error:
        return str(error)
    return None if path == folder else f"expected the folder of its partition path, {path!r}, found {folder!r}"


def refuse_other_rows(now: TableView) -> None:
    """Refuse to add the rows of files to a table that got rows since the adoption was planned.

    Raises: CommitConflictError if the table has a completed write, except the write of skeleton files.
    """
    others = [instant.requested_time for instant in now.completed_writes() if instant.requested_time != INSTANT]
    if others:
        raise CommitConflictError(
            f"{now.store.uri('')}: expected no rows but those of this adoption, found the commit {others[0]} of "
            "another process; nothing was committed. If it adopted the same files, there is nothing to do"
        )


def write_skeletons(rows: SourceRows, folder: Store, target: Store, extra_metadata: Mapping[str, str]) -> WriteResult:
    """Write a skeleton for each file with rows, and the bootstrap index, and commit them. The table exists.

    Memory: one row group of keys for each thread, and the bootstrap index. Raises: CorruptFileError, MissingFileError,
    RecordKeyError, CommitConflictError; nothing is committed then.
    """
    watch = PhaseTimes(*WRITE_PHASES)
    state = TableState(target)
    config = state.read_config()
    action = Action.DELTA_COMMIT if config.table_type is TableType.MERGE_ON_READ else Action.COMMIT
    files = [file for file in rows.files if file.rows]
    with write_instant(
        state, action, WriteOperation.BOOTSTRAP, index=None, properties={}, requested_time=INSTANT
    ) as write:
        write.guard = refuse_other_rows
        schema = write.view.schema()
        parquet = parquet_options(data_table(write.view), config.raw, schema.arrow)
        task = _Skeleton(rows, target, table_key_generator(config), parquet)
        with watch.phase("write"):
            stats = LocalEngine().run(task, files)
        with watch.phase("index"):
            _write_index(stats, files, folder, target)
        with watch.phase("commit"):
            write.commit(stats, schema=schema.avro, extra_metadata=extra_metadata)
    return WriteResult(
        instant=INSTANT,
        action=action.value,
        operation=WriteOperation.BOOTSTRAP.value.lower(),
        inserted=sum(stat.num_inserts for stat in stats),
        files_created=len(stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        seconds=watch.seconds(),
        notes=tuple(write.notes),
    )


def _write_index(stats: list[WriteStat], files: list[SourceFile], folder: Store, target: Store) -> None:
    now_ms = time.time_ns() // 1_000_000
    sources = [
        SkeletonSource(
            partition_path=stat.partition_path or "",
            file_id=stat.file_id,
            uri=folder.uri(file.path),
            size_bytes=file.size_bytes,
            modified_ms=file.modified_ms or now_ms,
        )
        for stat, file in zip(stats, files, strict=True)
    ]
    # A dead attempt may have left its index.
    target.replace(BY_FILE_ID, index_by_file_id(sources, folder.spec.uri, now_ms))
    target.replace(BY_PARTITION, index_by_partition(sources, folder.spec.uri, now_ms))


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """Callable for threads: write the skeleton of one file, whose rows are in the order of the file."""

    rows: SourceRows
    target: Store
    generator: KeyGenerator
    parquet: ParquetOptions

    def __call__(self, file: SourceFile, attempt: TaskContext) -> WriteStat:
        started = time.monotonic()
        partition_path = posixpath.dirname(file.path)
        file_id = str(uuid.uuid4())
        name = BaseFileName(file_id, attempt.write_token, INSTANT).name
        path = join_path(partition_path, name)
        with explained(self.target.spec.uri):
            ensure_partition_metadata(self.target, partition_path, INSTANT, is_likely_new=True)
            write_marker(self.target, INSTANT, path, IoType.CREATE)
            same = {COMMIT_TIME: INSTANT, PARTITION_PATH: partition_path, FILE_NAME: name}
            schema = with_meta_fields(pa.schema([]))
            numbers = SequenceNumbers(INSTANT, attempt.partition)
            with BaseFileWriter(self.target, path, schema, self.parquet, same) as writer:
                for names in self._keys(file):
                    writer.write(pa.table({SEQUENCE_NUMBER: numbers.take(len(names)), RECORD_KEY: names}))
        assert writer.rows == file.rows, f"{file.path}: {file.rows} rows expected, {writer.rows} found"
        return stat_of(writer, file_id, partition_path, started)

    def _keys(self, file: SourceFile) -> Iterator[pa.StringArray]:
        names = list(dict.fromkeys(name.split(".")[0] for name in self.generator.record_key_fields))
        for batch in self.rows.of_columns(names).of_file(file):
            yield self.generator.record_keys(batch)
