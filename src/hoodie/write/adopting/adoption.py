"""Adopt Parquet files as a Hudi table: plan what would be done, then rewrite the rows, or point to them.

Each is one commit: a bulk insert into the table's own files, or skeleton files beside the index of the source files. If
it dies, no row of it is visible; the same call begins again, and removes what the dead one left. After a success the
same call finds the commit and does nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.display import counted, html_facts, size_text
from hoodie.engine import LocalEngine
from hoodie.errors import InvalidConfigError, RecordKeyError, SchemaMismatchError, TableExistsError
from hoodie.files.table_properties import create_table_config, read_table_config, table_exists
from hoodie.format.table.table_config import TableConfig
from hoodie.index import table_index
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.storage import Store
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.adopting.key_scan import KeyScan, scan_keys
from hoodie.write.adopting.skeletons import DEFAULT_INDEX, bootstrapped_config, notes_of, problems_of, write_skeletons
from hoodie.write.adopting.source_files import Found, SourceFile, read_footers
from hoodie.write.adopting.source_rows import SourceRows, unified
from hoodie.write.bulk_insert import bulk_insert
from hoodie.write.create import CreateOptions, check_same_table, default_name, table_config
from hoodie.write.result import WriteResult

SOURCE_KEY: Final = "hoodie.python.adopted"
"""Key of the commit's extra metadata: the folder of the files, their number, and a digest of their names and sizes."""
REWRITE: Final = "rewrite"
METADATA_ONLY: Final = "metadata_only"
_SHOWN: Final = 5
_CORES_MAX: Final = 4
"""With more cores, streams that stage their rows are faster than one stream that writes them at once."""
_OPEN_PARTITIONS_MAX: Final = 64
"""One stream holds at most 256 MiB of rows of its open files: of more partitions, row groups would be small."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Adoption:
    """What an adoption found, and what it wrote.

    `refused`: why files or rows cannot be adopted; a call without `dry_run` raises an error if there are any.
    `duplicates`: rows whose key an earlier row has, and `duplicate_keys` a few of these keys; None without a record key
    and if files were refused before keys were read. `partitions`: rows by partition path. `schema`: the columns of the
    table; None if the files have no common schema. `write`: the result of the commit; None if nothing was
    written.
    """

    source: str
    target: str | None
    mode: str
    dry_run: bool
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    schema: pa.Schema | None = None
    partitions: Mapping[str, int] = field(default_factory=dict, hash=False)
    duplicates: int | None = None
    duplicate_keys: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    write: WriteResult | None = None

    @property
    def ok(self) -> bool:
        """Whether the files can be adopted: nothing is refused, and no key occurs twice."""
        return not self.refused and not self.duplicates

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; columns by name."""
        return {
            "source": self.source,
            "target": self.target,
            "mode": self.mode,
            "dry_run": self.dry_run,
            "files": self.files,
            "rows": self.rows,
            "size_bytes": self.size_bytes,
            "schema": self._columns,
            "partitions": dict(self.partitions),
            "duplicates": self.duplicates,
            "duplicate_keys": list(self.duplicate_keys),
            "refused": list(self.refused),
            "notes": list(self.notes),
            "write": None if self.write is None else self.write.to_dict(),
        }

    def __str__(self) -> str:
        files = f"{counted(self.files, 'files')}, {counted(self.rows, 'rows')}, {size_text(self.size_bytes)}"
        lines = [f"adopt {self.source} ({self.mode}): {files}"]
        lines.append("  columns: " + ", ".join(f"{name} {kind}" for name, kind in (self._columns or {}).items()))
        lines.append(f"  partitions: {self._partitions}")
        lines.append(f"  duplicates of keys: {self._duplicates}")
        lines += [f"  refused: {reason}" for reason in self.refused]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  {line}" for line in self._written.splitlines()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        facts = {
            "source": self.source,
            "target": self.target or "",
            "mode": self.mode,
            "files": self.files,
            "rows": self.rows,
            "size": size_text(self.size_bytes),
            "columns": "\n".join(f"{name} {kind}" for name, kind in (self._columns or {}).items()),
            "partitions": self._partitions,
            "duplicates of keys": self._duplicates,
            "refused": "\n".join(self.refused),
            "notes": "\n".join(self.notes),
            "written": self._written,
        }
        return html_facts(facts)

    @property
    def _written(self) -> str:
        return f"{'dry run: ' if self.dry_run else ''}nothing was written" if self.write is None else str(self.write)

    @property
    def _columns(self) -> dict[str, str] | None:
        return None if self.schema is None else {child.name: str(child.type) for child in self.schema}

    @property
    def _partitions(self) -> str:
        shown = [f"{path or '(none)'} {counted(rows, 'rows')}" for path, rows in list(self.partitions.items())[:_SHOWN]]
        return f"{len(self.partitions):,}: {', '.join(shown)}{', …' if len(self.partitions) > _SHOWN else ''}"

    @property
    def _duplicates(self) -> str:
        if self.duplicates is None:
            return "not counted"
        return f"{self.duplicates:,}" + (f", e.g. {list(self.duplicate_keys)}" if self.duplicates else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptOptions:
    """What a caller chose. `wanted.partition_by`: None for the columns of the folders' names."""

    wanted: CreateOptions
    mode: str = REWRITE
    dry_run: bool = True


def adopt(found: Found, target: Store | None, options: AdoptOptions) -> Adoption:
    """Plan an adoption, and execute it unless it is a dry run.

    Raises: InvalidConfigError if a target is missing, or something is refused; RecordKeyError for duplicates of keys;
        TableExistsError if the target is a table with other rows; as `hoodie.create` and `Table.bulk_insert`.
    """
    if options.mode not in (REWRITE, METADATA_ONLY):
        raise InvalidConfigError(f"mode={options.mode!r}: expected {REWRITE!r} or {METADATA_ONLY!r}")
    if target is not None:
        _check_apart(found, target)
    elif not options.dry_run:
        raise InvalidConfigError("target: expected the folder of the new table; the Parquet files stay where they are")
    files, refused = read_footers(found)
    schema, refused = _schema(files, refused, found, options.mode)
    plan = Adoption(
        source=found.store.uri(""),
        target=None if target is None else target.uri(""),
        mode=options.mode,
        dry_run=options.dry_run,
        files=len(files),
        rows=sum(file.rows for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        schema=schema,
        refused=refused,
        notes=_notes(files),
    )
    if schema is None:
        return plan if options.dry_run else _raise_refused(plan)
    wanted = _completed(options, files)
    config = table_config(schema, wanted, default_name=default_name(target or found.store))
    rows = SourceRows(found.store.spec, files, schema)
    if options.mode == METADATA_ONLY:
        config = bootstrapped_config(config, found.store)
        plan = replace(
            plan, refused=(*refused, *problems_of(rows, config)), notes=(*plan.notes, *notes_of(plan.source, files))
        )
    done = None if target is None else _adopted(target, config, wanted, _source_text(found, files))
    if done is not None:
        return replace(plan, notes=(*plan.notes, done))
    plan = _with_keys(plan, _scanned(rows, config, target or found.store))
    if options.dry_run:
        return plan
    _check_plan(plan)
    assert target is not None
    if not table_exists(target):
        create_table_config(target, config)
    extra = {SOURCE_KEY: _source_text(found, files)}
    if options.mode == METADATA_ONLY:
        return replace(plan, write=write_skeletons(rows, found.store, target, extra))
    return replace(plan, write=_rewrite(rows, target, config, plan, extra))


def _rewrite(
    rows: SourceRows, target: Store, config: TableConfig, plan: Adoption, extra: Mapping[str, str]
) -> WriteResult:
    call = Call(state=TableState(target), extra_metadata=extra)
    is_placed = table_index(config).places_rows
    is_small = len(plan.partitions) <= _OPEN_PARTITIONS_MAX and LocalEngine().parallelism <= _CORES_MAX
    if is_small and not is_placed:
        # One stream fills one file of each partition after the other, and needs no staged copy of the rows.
        return bulk_insert(call, replace(rows, streams_max=1), distribution="none")
    return bulk_insert(call, rows)


def _adopted(target: Store, config: TableConfig, wanted: CreateOptions, source: str) -> str | None:
    """Return a note if the target has the rows of these files already. `source`: their text in the commit.

    Raises: TableExistsError if it has other rows; InvalidConfigError if it is a table of other options.
    """
    if not table_exists(target):
        return None
    existing = read_table_config(target)
    check_same_table(existing, wanted)
    if existing.bootstrap_base_path != config.bootstrap_base_path:
        raise InvalidConfigError(
            f"{target.uri('')} is a table with the bootstrap folder {existing.bootstrap_base_path}, but the call has "
            f"{config.bootstrap_base_path}; use the mode and the files of the table, or a new folder"
        )
    view = TableView.load(TableState(target))
    commits = view.completed_writes()
    if not commits:
        return None
    sources = {view.commit_metadata(commit).extra_metadata.get(SOURCE_KEY): commit.requested_time for commit in commits}
    done = sources.get(source)
    if done is None:
        raise TableExistsError(
            f"{target.uri('')} is a table with {counted(len(commits), 'commits')}, and none adopted these files: "
            "expected a new folder; to add rows to this table, use t.upsert or t.bulk_insert"
        )
    return f"the commit {done} of the target adopted these files already; nothing was written"


def _source_text(found: Found, files: tuple[SourceFile, ...]) -> str:
    listed = sorted(f"{file.path}\0{file.size_bytes}" for file in files)
    digest = hashlib.sha256("\n".join(listed).encode()).hexdigest()[:32]
    return f"{found.store.uri('')} {len(files)} files {digest}"


def _schema(
    files: tuple[SourceFile, ...], refused: tuple[str, ...], found: Found, mode: str
) -> tuple[pa.Schema | None, tuple[str, ...]]:
    """Return the schema of all files, and what is refused; no schema if there is none."""
    if not files:
        return None, refused
    try:
        # JVM Hudi fails to update bootstrapped rows with dates in the partition path.
        return unified(files, found.store.uri(""), has_dates=mode == REWRITE), refused
    except SchemaMismatchError as error:
        return None, (*refused, str(error))


def _completed(options: AdoptOptions, files: tuple[SourceFile, ...]) -> CreateOptions:
    """Return the options of the table with the partition columns and the index that the caller left open."""
    wanted = options.wanted
    if wanted.partition_by is None:
        wanted = replace(wanted, partition_by=tuple(name for name, _ in files[0].values))
    if options.mode == METADATA_ONLY and wanted.index is None:
        wanted = replace(wanted, index=DEFAULT_INDEX)
    return wanted


def _scanned(rows: SourceRows, config: TableConfig, store: Store) -> KeyScan:
    generator = replace(table_key_generator(config), path_limits=store.spec.folder_limits)
    return scan_keys(rows, generator, is_global=table_index(config).is_global)


def _with_keys(plan: Adoption, scan: KeyScan) -> Adoption:
    return replace(
        plan,
        partitions=dict(sorted(scan.partitions.items())),
        duplicates=scan.duplicates,
        duplicate_keys=scan.examples,
        refused=(*plan.refused, *scan.refused),
    )


def _notes(files: tuple[SourceFile, ...]) -> tuple[str, ...]:
    replaced = sorted({name for file in files for name in file.replaced})
    names = ", ".join(replaced)
    note = f"columns {names} of the files are not read: the folders' names, or Hudi, have columns of these names"
    return (note,) if replaced else ()


def _check_plan(plan: Adoption) -> None:
    if plan.refused:
        _raise_refused(plan)
    if plan.duplicates:
        raise RecordKeyError(
            f"{plan.source}: {counted(plan.duplicates, 'rows')} have the key of an earlier row, e.g. "
            f"{list(plan.duplicate_keys)}; nothing was written. Choose a record key that is unique, or create "
            "the table and upsert the files, which keeps the newest row of each key"
        )


def _raise_refused(plan: Adoption) -> Adoption:
    shown = "; ".join(plan.refused[:_SHOWN])
    raise InvalidConfigError(f"{plan.source}: nothing was written; {counted(len(plan.refused), 'problems')}: {shown}")


def _check_apart(found: Found, target: Store) -> None:
    """Refuse a target in the folder of the files, and files in the target: readers of one would see the other's."""
    place, source = target.uri("").rstrip("/") + "/", found.store.uri("").rstrip("/") + "/"
    inside = next((file.path for file in found.files if found.store.uri(file.path).startswith(place)), None)
    if inside is not None or (place.startswith(source) and found.is_folder):
        raise InvalidConfigError(
            f"target={target.uri('')}: expected a folder apart from {found.store.uri('')}: engines that read all "
            "Parquet files of a folder would return the rows twice"
        )
