"""Find the Parquet files that an adoption takes: those of a folder, or a list of files; and read their footers.

Folders named `column=value` give their files columns, as in Hive and Spark. Names that begin with `.`, or with `_` and
have no `=`, are skipped, as Spark skips them. Folders of Delta, Iceberg and Hudi tables are refused: they have files
without valid rows.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CorruptFileError, HoodieError, InvalidConfigError, MissingFileError
from hoodie.format.filenames import name_of
from hoodie.format.schema.arrow_types import has_null_type
from hoodie.format.schema.int96 import int96_columns, with_utc
from hoodie.format.schema.table_schema import META_FIELDS, OPERATION_FIELD, normalise
from hoodie.records.keys.partition_path import DEFAULT_PARTITION
from hoodie.storage import Store, open_store

_META: Final = frozenset({*META_FIELDS, OPERATION_FIELD})
PathValues = tuple[tuple[str, str | None], ...]
"""Texts of the columns that a file has from its folders, or from the caller; None is null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One Parquet file, as its footer describes it; `path` is relative to the folder of the adoption.

    `schema`: its columns in the types of a table, without Hudi's meta columns and without the columns of `values`.
    `replaced`: columns of the file that are not read, because `values` or Hudi have columns of these names. `int96`:
    columns with times of this physical type, which are points in time. `untyped`: columns in which the file has nulls,
    and no type; another file must name it.
    """

    path: str
    size_bytes: int
    row_groups: tuple[tuple[int, int], ...]
    """Rows and uncompressed bytes of each row group."""
    schema: pa.Schema
    values: PathValues = ()
    replaced: tuple[str, ...] = ()
    int96: frozenset[str] = frozenset()
    untyped: tuple[str, ...] = ()
    modified_ms: int = 0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(rows for rows, _ in self.row_groups)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file before its footer is read. `size_bytes` and `modified_ms` are 0 if they are not known."""

    path: str
    values: PathValues
    size_bytes: int = 0
    modified_ms: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The folder of an adoption and the files in it that are taken.

    `is_folder`: all files of the folder are taken but `skipped`, the paths of those whose names hide them.
    """

    store: Store
    files: tuple[FoundFile, ...]
    is_folder: bool
    skipped: tuple[str, ...] = ()


def find_in_folder(store: Store) -> Found:
    """List the files of a folder.

    Raises: InvalidConfigError if the folder has no files, or is a Delta, Iceberg or Hudi table; as `values_of_folders`.
    """
    listed = store.list("", recursive=True)
    _refuse_tables(store, [info.path for info in listed])
    shown = [info for info in listed if not _is_hidden(info.path)]
    if not shown:
        raise InvalidConfigError(f"{store.uri('')}: expected a folder with Parquet files, found no file")
    files = tuple(
        FoundFile(info.path, values_of_folders(info.path), info.size_bytes, info.modified_ms) for info in shown
    )
    skipped = tuple(info.path for info in listed if _is_hidden(info.path))
    return Found(store, files, is_folder=True, skipped=skipped)


def _is_hidden(path: str) -> bool:
    """Return whether a part of the path hides the file; a folder such as `_day=1` is a partition."""
    return any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in path.split("/"))


def find_listed(
    files: Sequence[str],
    values: Mapping[str, Mapping[str, Any]] | None,
    options: Mapping[str, str] | None,
) -> Found:
    """Return listed files. `values`: the columns of each file by its listed name; None: those of its folders' names.

    Raises: InvalidConfigError for files of several stores, an empty list, and `values` of other files.
    """
    if not files:
        raise InvalidConfigError("files=[]: expected the paths or URIs of Parquet files")
    # One spelling: local paths are absolute and have no scheme.
    is_remote = {file: "://" in file and not file.startswith("file:") for file in files}
    bare = {file: file if is_remote[file] else open_store(file).spec.uri for file in files}
    roots = {path.partition("/")[0] if "://" not in path else "/".join(path.split("/")[:3]) for path in bare.values()}
    if len(roots) > 1:
        raise InvalidConfigError(
            f"files: expected files of one store, found {sorted(roots)[:5]}; adopt each on its own"
        )
    if unknown := sorted(set(values or ()) - bare.keys()):
        raise InvalidConfigError(f"partition_values: {unknown[0]!r} is not in files; expected the names as in files")
    (root,) = roots
    below = {file: path.removeprefix(root).lstrip("/") for file, path in bare.items()}
    is_one_store = root.startswith("memory://")
    folder = "" if is_one_store else posixpath.commonpath([posixpath.dirname(path) for path in below.values()])
    store = open_store(root if is_one_store else f"{root}/{folder}", options)
    found = []
    for file in dict.fromkeys(files):
        path = below[file].removeprefix(folder).lstrip("/")
        own = values_of_folders(below[file]) if values is None else _texts(values.get(file, {}))
        found.append(FoundFile(path, own))
    return Found(store, tuple(found), is_folder=False)


def values_of_folders(path: str) -> PathValues:
    """Return the columns and texts of the folders `column=value` of a path.

    >>> values_of_folders("year=2026/city=S%C3%A3o Paulo/part-0.parquet")
    (('year', '2026'), ('city', 'São Paulo'))

    Raises: InvalidConfigError for a folder whose name has bytes that are no UTF-8.
    """
    pairs = [part.partition("=") for part in path.split("/")[:-1]]
    return tuple(
        (_decoded(name, path), None if text == DEFAULT_PARTITION else _decoded(text, path))
        for name, mark, text in pairs
        if mark and name
    )


def _decoded(text: str, path: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidConfigError(
            f"{path}: expected UTF-8 in the names of folders, found {text!r}: other folders would have the same value; "
            "rename the folder, or name the values with partition_values="
        ) from error


def read_footers(found: Found) -> tuple[tuple[SourceFile, ...], tuple[str, ...]]:
    """Read the footers of all files on threads; return the files, and why others are refused. A request or two each."""

    def read(file: FoundFile, _context: TaskContext) -> SourceFile | str:
        try:
            return _source_file(found.store, file)
        except HoodieError as error:
            return str(error)

    results = LocalEngine().run(read, found.files)
    files = [result for result in results if isinstance(result, SourceFile)]
    refused = [result for result in results if isinstance(result, str)]
    names = {tuple(name for name, _ in file.values): file.path for file in reversed(files)}
    if len(names) > 1:
        first = tuple(name for name, _ in files[0].values)
        refused += [
            f"{found.store.uri(path)}: expected folders of the columns {list(first)}, as of {files[0].path}, found "
            f"{list(own)}; move the file, or name the files with files="
            for own, path in names.items()
            if own != first
        ]
    return tuple(files), tuple(refused)


@contextlib.contextmanager
def open_source(store: Store, path: str, size_bytes: int = 0) -> Iterator[tuple[pq.ParquetFile, int]]:
    """Open a file and read its footer; yields it and its length. INT96 becomes microseconds, which cover its years.

    Raises: MissingFileError; CorruptFileError if the file is no Parquet, has another length than `size_bytes` (0: any),
    or its data cannot be read in the body.
    """
    where = store.uri(path)
    try:
        source = store.open_input(path)
    except FileNotFoundError as error:
        raise MissingFileError("expected a Parquet file, found no file", path=where) from error
    with source:
        length = int(source.size())
        if size_bytes and length != size_bytes:
            raise CorruptFileError(
                f"expected the file of {size_bytes} bytes that was planned, found {length} bytes: another program "
                "replaced it; adopt again when the files do not change",
                path=where,
            )
        try:
            yield pq.ParquetFile(source, page_checksum_verification=True, coerce_int96_timestamp_unit="us"), length
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            if isinstance(error, HoodieError):
                raise
            raise CorruptFileError(f"expected a Parquet file, found {length} bytes ({error})", path=where) from error


def _source_file(store: Store, file: FoundFile) -> SourceFile:
    with open_source(store, file.path, file.size_bytes) as (parquet, length):
        metadata, stored, points = parquet.metadata, parquet.schema_arrow, int96_columns(parquet.schema)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        replaced = _META | {name for name, _ in file.values}
        try:
            own = [child for child in stored if child.name not in replaced and not has_null_type(child.type)]
            schema = normalise(pa.schema([c.with_type(with_utc(c.type)) if c.name in points else c for c in own]))
        except HoodieError as error:
            raise type(error)(f"{store.uri(file.path)}: {error}") from error
        return SourceFile(
            path=file.path,
            size_bytes=length,
            row_groups=tuple((group.num_rows, group.total_byte_size) for group in groups),
            schema=schema,
            values=file.values,
            replaced=tuple(name for name in stored.names if name in replaced),
            int96=points,
            untyped=tuple(c.name for c in stored if c.name not in replaced and has_null_type(c.type)),
            modified_ms=file.modified_ms,
        )


def _refuse_tables(store: Store, paths: Sequence[str]) -> None:
    where = store.uri("")
    for path in paths:
        folders, name = path.split("/")[:-1], name_of(path)
        if "_delta_log" in folders:
            raise InvalidConfigError(
                f"{where} has a Delta table ({path}): some of its files have deleted rows; pass the files of its "
                "newest version, files=DeltaTable(path).file_uris()"
            )
        if folders[-1:] == ["metadata"] and name.endswith(".metadata.json"):
            raise InvalidConfigError(
                f"{where} has an Iceberg table ({path}): some of its files have deleted rows; pass the files of a scan "
                "of its newest snapshot with files="
            )
        if ".hoodie" in folders:
            raise InvalidConfigError(f"{where} has a Hudi table ({path}): open it with hoodie.open")


def _texts(values: Mapping[str, Any]) -> PathValues:
    return tuple((name, None if value is None else str(value)) for name, value in values.items())
