"""Adopt Parquet files as a Hudi table: plan what would be done, then rewrite the rows, or point to them.

Each is one commit: a bulk insert into the table's own files, or skeleton files beside the index of the source files. If
it dies, no row of it is visible; the same call begins again, and removes what the dead one left. After a success the
same call finds the commit and does nothing. An adoption with both modes is two commits.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.display import counted
from hoodie.engine import LocalEngine
from hoodie.errors import InvalidConfigError, RecordKeyError, SchemaMismatchError, TableExistsError, UnsupportedError
from hoodie.files.table_properties import create_table_config, read_table_config, table_exists
from hoodie.format.filenames import name_of
from hoodie.format.table.table_config import TableConfig
from hoodie.index import table_index
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.storage import Store
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.adopting.key_scan import scan_keys
from hoodie.write.adopting.result import Adoption
from hoodie.write.adopting.skeletons import (
    DEFAULT_INDEX,
    bootstrapped_config,
    notes_of,
    problems_of,
    refuse_other_rows,
    write_skeletons,
)
from hoodie.write.adopting.source_files import Found, SourceFile, read_footers
from hoodie.write.adopting.source_rows import SourceRows, unified
from hoodie.write.bulk_insert import bulk_insert
from hoodie.write.create import CreateOptions, check_same_table, default_name, register_merging, table_config
from hoodie.write.indexed import upsert
from hoodie.write.result import WriteResult

SOURCE_KEY: Final = "hoodie.python.adopted"
"""Key of the commit's extra metadata: the folder of the files, their number, and a digest of their names and sizes."""
REWRITE: Final = "rewrite"
METADATA_ONLY: Final = "metadata_only"
ERROR: Final = "error"
MERGE: Final = "merge"
_OTHERS: Final = "*"
_HOLD_ALL_ROWS: Final = frozenset({"global_simple", "global_bloom"})
"""Indexes by which an upsert gathers the rows of a key of all partitions in memory (`Index.needs_exchange`)."""
_SHOWN: Final = 5
_CORES_MAX: Final = 4
"""With more cores, several streams that stage their rows are faster than one stream whose threads encode row groups."""
_OPEN_PARTITIONS_MAX: Final = 64
"""One stream holds at most 256 MiB of rows of its open files: of more partitions, row groups would be small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptOptions:
    """What a caller chose. `wanted.partition_by`: None for the columns of the folders' names.

    `mode`: of all files, or by partition path; the path `*` stands for all other partitions, which are rewritten
    without it. `duplicates`: whether several rows of one key are an error, or are merged by the table's merge rule.
    """

    wanted: CreateOptions
    mode: str | Mapping[str, str] = REWRITE
    duplicates: str = ERROR
    dry_run: bool = True

    def __post_init__(self) -> None:
        """Check the modes, and whether duplicates can be merged. Raises: InvalidConfigError, UnsupportedError."""
        modes = (self.mode,) if isinstance(self.mode, str) else tuple(self.mode.values())
        for mode in modes:
            if mode not in (REWRITE, METADATA_ONLY):
                raise InvalidConfigError(f"mode={mode!r}: expected {REWRITE!r} or {METADATA_ONLY!r}")
        if self.duplicates not in (ERROR, MERGE):
            raise InvalidConfigError(f"duplicates={self.duplicates!r}: expected {ERROR!r} or {MERGE!r}")
        if not self.merges_duplicates:
            return
        if METADATA_ONLY in modes:
            raise InvalidConfigError(
                "duplicates='merge' contradicts mode='metadata_only': rows that stay in the source files cannot be "
                "merged; use mode='rewrite'"
            )
        if not self.wanted.record_key:
            raise InvalidConfigError(
                "duplicates='merge' requires record_key: with automatic keys no two rows have one key"
            )
        if self.wanted.index in _HOLD_ALL_ROWS:
            raise UnsupportedError(
                f"duplicates='merge' with index={self.wanted.index!r} would hold all rows in memory; use "
                "index='record', or an index of single partitions"
            )
        if callable(self.wanted.merge_mode):
            raise UnsupportedError(
                "duplicates='merge' with a merge function: expected the merge mode 'event_time' or 'commit_time'; "
                "create the table, and upsert the files"
            )

    @property
    def merges_duplicates(self) -> bool:
        """Whether rows of one key become one row."""
        return self.duplicates == MERGE

    def mode_of(self, partition_path: str) -> str:
        """Return the mode of the files of a partition."""
        if isinstance(self.mode, str):
            return self.mode
        return self.mode.get(partition_path, self.mode.get(_OTHERS, REWRITE))


def adopt(found: Found, target: Store | None, options: AdoptOptions) -> Adoption:
    """Plan an adoption, and execute it unless it is a dry run.

    Raises: InvalidConfigError if a target is missing, or something is refused; RecordKeyError for duplicates of keys;
        TableExistsError if the target is a table with other rows; as `hoodie.create` and `Table.bulk_insert`.
    """
    if target is not None:
        _check_apart(found, target)
    elif not options.dry_run:
        raise InvalidConfigError("target: expected the folder of the new table; the Parquet files stay where they are")
    files, refused = read_footers(found)
    parts = _parts(files, options)
    schema, refused = _schema(files, refused, found, has_dates=METADATA_ONLY not in parts)
    plan = Adoption(
        source=found.store.uri(""),
        target=None if target is None else target.uri(""),
        mode=options.mode,
        merges_duplicates=options.merges_duplicates,
        dry_run=options.dry_run,
        files=len(files),
        rows=sum(file.rows for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        schema=schema,
        refused=refused,
        notes=_notes(files, found),
    )
    if schema is None:
        if not options.dry_run:
            _check_plan(plan)
        return plan
    wanted = _completed(options.wanted, files, is_in_place=METADATA_ONLY in parts)
    config = table_config(schema, wanted, default_name=default_name(target or found.store))
    rows = SourceRows(found.store.spec, files, schema)
    if METADATA_ONLY in parts:
        config = bootstrapped_config(config, found.store)
        problems = problems_of(replace(rows, files=parts[METADATA_ONLY]), config)
        notes = notes_of(plan.source, parts[METADATA_ONLY])
        plan = replace(plan, refused=(*refused, *problems), notes=(*plan.notes, *notes))
    texts = {mode: _source_text(found, own) for mode, own in parts.items()}
    done = {} if target is None else _adopted(target, config, wanted, set(texts.values()))
    if len(done) == len(texts):
        instants = " and ".join(sorted(done.values()))
        note = f"the target has the rows of these files already, from {instants}; nothing was written"
        return replace(plan, notes=(*plan.notes, note))
    plan = _with_keys(plan, rows, config, target or found.store)
    if options.dry_run:
        return plan
    _check_plan(plan)
    assert target is not None
    if not table_exists(target):
        create_table_config(target, config)
        register_merging(wanted)
    left = {mode: replace(rows, files=own) for mode, own in parts.items() if texts[mode] not in done}
    written = [_write(mode, own, found, target, plan, {SOURCE_KEY: texts[mode]}) for mode, own in left.items()]
    return replace(plan, write=_together(written))


def _parts(files: tuple[SourceFile, ...], options: AdoptOptions) -> dict[str, tuple[SourceFile, ...]]:
    """Return the files of each mode that has files; those that stay first, as in the JVM's bootstrap."""
    folders = {posixpath.dirname(file.path) for file in files}
    if not isinstance(options.mode, str) and (unknown := sorted(options.mode.keys() - folders - {_OTHERS})):
        raise InvalidConfigError(
            f"mode: no files in the folder {unknown[0]!r}; expected folders as {sorted(folders)[:5]}"
        )
    modes = {path: options.mode_of(path) for path in folders}
    parts = {
        mode: tuple(file for file in files if modes[posixpath.dirname(file.path)] == mode)
        for mode in (METADATA_ONLY, REWRITE)
    }
    return {mode: own for mode, own in parts.items() if own}


def _together(results: Sequence[WriteResult]) -> WriteResult:
    """Return the result of the last commit, with the counts of all."""
    *before, last = results
    return replace(
        last,
        inserted=sum(result.inserted for result in results),
        files_created=sum(result.files_created for result in results),
        bytes_written=sum(result.bytes_written for result in results),
        notes=(
            *(f"{result.operation} at {result.instant}: {result.inserted:,} inserted" for result in before),
            *last.notes,
        ),
    )


def _write(
    mode: str, rows: SourceRows, found: Found, target: Store, plan: Adoption, extra: Mapping[str, str]
) -> WriteResult:
    if mode == METADATA_ONLY:
        return write_skeletons(rows, found.store, target, extra)
    call = Call(state=TableState(target), extra_metadata=extra, guard=refuse_other_rows)
    if plan.duplicates:
        return upsert(call, rows)
    is_placed = table_index(read_table_config(target)).places_rows
    is_small = len(plan.partitions) <= _OPEN_PARTITIONS_MAX and LocalEngine().parallelism <= _CORES_MAX
    if is_small and not is_placed:
        # One stream fills one file of each partition after the other, and needs no staged copy of the rows.
        return bulk_insert(call, replace(rows, streams_max=1))
    return bulk_insert(call, rows)


def _adopted(target: Store, config: TableConfig, wanted: CreateOptions, texts: Set[str]) -> dict[str, str]:
    """Return the texts of sources whose rows the target has, and the instants of their commits."""
    if not table_exists(target):
        return {}
    existing = read_table_config(target)
    check_same_table(existing, wanted)
    if existing.bootstrap_base_path != config.bootstrap_base_path:
        raise InvalidConfigError(
            f"{target.uri('')} is a table with the bootstrap folder {existing.bootstrap_base_path}, but the call has "
            f"{config.bootstrap_base_path}; use the mode and the files of the table, or a new folder"
        )
    view = TableView.load(TableState(target))
    commits = view.completed_writes()
    sources = {
        view.commit_metadata(commit).extra_metadata.get(SOURCE_KEY, ""): commit.requested_time for commit in commits
    }
    done = {text: instant for text, instant in sources.items() if text in texts}
    if commits and not done:
        raise TableExistsError(
            f"{target.uri('')} is a table with {counted(len(commits), 'commits')}, and none adopted these files: "
            "expected a new folder; to add rows to this table, use t.upsert or t.bulk_insert"
        )
    return done


def _source_text(found: Found, files: tuple[SourceFile, ...]) -> str:
    listed = sorted(f"{file.path}\0{file.size_bytes}" for file in files)
    digest = hashlib.sha256("\n".join(listed).encode()).hexdigest()[:32]
    return f"{found.store.uri('')} {len(files)} files {digest}"


def _schema(
    files: tuple[SourceFile, ...], refused: tuple[str, ...], found: Found, *, has_dates: bool
) -> tuple[pa.Schema | None, tuple[str, ...]]:
    """Return the schema of all files, and what is refused; no schema if there is none."""
    if not files:
        return None, refused
    try:
        # JVM Hudi fails to update bootstrapped rows with dates in the partition path.
        return unified(files, found.store.uri(""), has_dates=has_dates), refused
    except SchemaMismatchError as error:
        return None, (*refused, str(error))


def _completed(wanted: CreateOptions, files: tuple[SourceFile, ...], *, is_in_place: bool) -> CreateOptions:
    """Return the options of the table with the partition columns and the index that the caller left open."""
    if wanted.partition_by is None:
        wanted = replace(wanted, partition_by=tuple(name for name, _ in files[0].values))
    if is_in_place and wanted.index is None:
        wanted = replace(wanted, index=DEFAULT_INDEX)
    return wanted


def _with_keys(plan: Adoption, rows: SourceRows, config: TableConfig, store: Store) -> Adoption:
    generator = replace(table_key_generator(config), path_limits=store.spec.folder_limits)
    scan = scan_keys(rows, generator, is_global=table_index(config).is_global)
    return replace(
        plan,
        partitions=dict(sorted(scan.partitions.items())),
        duplicates=scan.duplicates,
        duplicate_keys=scan.examples,
        refused=(*plan.refused, *scan.refused),
    )


def _notes(files: tuple[SourceFile, ...], found: Found) -> tuple[str, ...]:
    """Return notes on the columns and files that are not read; Spark's `_SUCCESS` and `.crc` files have no rows."""
    notes = []
    if names := ", ".join(sorted({name for file in files for name in file.replaced})):
        notes.append(
            f"columns {names} of the files are not read: the folders' names, or Hudi, have columns of these names"
        )
    paths = [path for path in found.skipped if name_of(path) != "_SUCCESS" and not path.endswith(".crc")]
    if paths:
        shown = ", ".join(paths[:_SHOWN]) + (", …" if len(paths) > _SHOWN else "")
        notes.append(f"not read, as names that begin with _ or . hide them: {counted(len(paths), 'files')}: {shown}")
    return tuple(notes)


def _check_plan(plan: Adoption) -> None:
    if plan.refused:
        raise InvalidConfigError(
            f"{plan.source}: nothing was written; {counted(len(plan.refused), 'problems')}: "
            f"{'; '.join(plan.refused[:_SHOWN])}"
        )
    if plan.duplicates and not plan.merges_duplicates:
        raise RecordKeyError(
            f"{plan.source}: {counted(plan.duplicates, 'rows')} have the key of an earlier row, e.g. "
            f"{list(plan.duplicate_keys)}; nothing was written. Choose a record key that is unique, or keep the newest "
            "row of each key with duplicates='merge' and mode='rewrite'"
        )


def _check_apart(found: Found, target: Store) -> None:
    """Refuse a target in the folder of the files, and files in the target: readers of one would see the other's."""
    place, source = target.uri("").rstrip("/") + "/", found.store.uri("").rstrip("/") + "/"
    inside = next((file.path for file in found.files if found.store.uri(file.path).startswith(place)), None)
    if inside is not None or (place.startswith(source) and found.is_folder):
        raise InvalidConfigError(
            f"target={target.uri('')}: expected a folder apart from {found.store.uri('')}: engines that read all "
            "Parquet files of a folder would return the rows twice"
        )
