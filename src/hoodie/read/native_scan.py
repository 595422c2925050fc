"""Which base files of a scan the Parquet readers of DuckDB and Polars may read: they read them as fast as plain files.

A file may be read so if its slice has no log files, and the reader makes the same rows of it as `SliceScan`. The other
slices of the scan come in batches from us. All files are opened here, so that a missing or damaged one is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.format.parquet_footer import has_nan_bounds
from hoodie.read.plan import ScanPlan
from hoodie.storage import StoreSpec

FILES_MAX: Final = 64
"""A reader that gets no condition from us opens each file in each query. Above this, our plans save more by pruning."""
_GLOB: Final = frozenset("*?[]{}\\")
_PLAIN_KEY: Final = re.compile(r"s3a?://[\w./=:@,-]+", re.ASCII)
"""Readers decode other characters of a URI, each in its own way."""
_INT96: Final = re.compile(r"^ *(required|optional|repeated) int96 ", re.MULTILINE)
"""Readers give INT96 different units."""
_FLOAT: Final = re.compile(r"^ *(required|optional|repeated) (float|double) ", re.MULTILINE)
_CODECS: Final = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"})
_ARROW_SCHEMA: Final = b"ARROW:schema"
"""The key of a footer under which writers of Arrow data keep its types, which Polars prefers to those of Parquet."""
_OURS: Final = frozenset({"aws_conditional_put", "conditional_put"})
"""Options of writes."""
_S3_OPTIONS: Final = _OURS | {
    "allow_http",
    *(
        f"aws_{name}"
        for name in ("access_key_id", "secret_access_key", "session_token", "region", "endpoint", "endpoint_url")
    ),
    "aws_virtual_hosted_style_request",
}
_WIDENED: Final = frozenset({(pa.int32(), pa.int64()), (pa.int32(), pa.float64())})
"""Types of files, and of the table, between which each value stays the same. A float gets other digits as a double."""


class Stored(Enum):
    """How the files have a column of the table."""

    SAME = "same"
    NARROWER = "narrower"
    """With another type; a cast to the type of the table changes no value."""
    ABSENT = "absent"
    """Not at all: the files are older than the column, which is null in their rows."""


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """Files of one form, which a reader of Parquet may read by their `uris`.

    `names` are their columns. `columns` are those of the scan, in its order.
    """

    files: tuple[BaseFile, ...]
    uris: tuple[str, ...]
    names: tuple[str, ...]
    columns: tuple[tuple[pa.Field, Stored], ...]

    @property
    def are_as_the_scan(self) -> bool:
        """Whether the files have exactly the columns of the scan."""
        return self.names == tuple(child.name for child, stored in self.columns if stored is Stored.SAME) and len(
            self.names
        ) == len(self.columns)


@dataclass(frozen=True, slots=True)
class _Form:
    """What readers see of the columns of a file; files of one form are read in the same way."""

    parquet: str
    arrow: bytes | None
    schema: pa.Schema
    paths: tuple[str, ...]
    """Paths of the leaf columns, if the file has nested columns."""

    def __hash__(self) -> int:
        return hash((self.parquet, self.arrow))


def native_files(plan: ScanPlan, schema: pa.Schema) -> list[NativeFiles]:
    """Return the files that a reader of Parquet may read, by their forms; `schema` has the wanted columns.

    Reads the footer of each base file of the plan without log files. Raises: MissingFileError, CorruptFileError.
    """
    spec = plan.view.store.spec
    candidates = [file for file in plan.files if _uri(spec, file) is not None]
    store = plan.view.store

    def form_of(file: BaseFile, context: TaskContext) -> _Form | None:
        with open_base_file(store, file) as (parquet, _):
            return _form(parquet)

    groups: dict[_Form, list[BaseFile]] = {}
    for file, form in zip(candidates, LocalEngine().run(form_of, candidates), strict=True):
        if form is not None:
            groups.setdefault(form, []).append(file)
    found = []
    for form, files in groups.items():
        columns = [_stored(form, child) for child in schema]
        if None not in columns:
            uris = tuple(str(_uri(spec, file)) for file in files)
            pairs = tuple((child, stored) for child, stored in zip(schema, columns, strict=True) if stored is not None)
            found.append(NativeFiles(tuple(files), uris, tuple(form.schema.names), pairs))
    return found


def is_local(spec: StoreSpec) -> bool:
    """Return whether the files of a table are on a disk of this machine."""
    return spec.uri.startswith("/")


def reader_options(spec: StoreSpec) -> dict[str, str] | None:
    """Return the options with which Polars opens a table's files; None if it might open them in another way than we.

    Polars ignores unknown options without a word. The options in `_S3_OPTIONS` have the same names and values for its
    client of S3. The keys must be among them: Polars looks for other credentials in an order of its own.
    """
    if is_local(spec):
        return {}
    given = dict(spec.options)
    has_keys = {"aws_access_key_id", "aws_secret_access_key"} <= given.keys()
    is_known = spec.uri.startswith(("s3://", "s3a://")) and given.keys() <= _S3_OPTIONS
    return {name: given[name] for name in given if name not in _OURS} if is_known and has_keys else None


def _uri(spec: StoreSpec, file: BaseFile) -> str | None:
    """Return the path or URI of a file; None if readers could take it for a pattern, or for another file."""
    uri = f"{spec.uri}/{file.path}"
    if is_local(spec):
        return None if _GLOB & set(uri) else uri
    return uri if spec.is_remote and _PLAIN_KEY.fullmatch(uri) else None


def _form(parquet: pq.ParquetFile) -> _Form | None:
    """Return the form of an open file; None for what other readers read differently, or not at all."""
    # The first two lines are the address of the object and the name that the writer gave to the row.
    text = str(parquet.schema).split("\n", 2)[2]
    metadata = parquet.metadata
    entries = metadata.metadata or {}
    if _INT96.search(text):
        return None
    # pyarrow and others leave NaN out of the bounds of columns, by which readers skip rows.
    if not has_nan_bounds(metadata) and _FLOAT.search(text):
        return None
    if metadata.num_row_groups and metadata.row_group(0).column(0).compression not in _CODECS:
        return None
    schema = parquet.schema_arrow
    paths: tuple[str, ...] = ()
    if any(pa.types.is_nested(child.type) for child in schema):
        paths = tuple(parquet.schema.column(number).path for number in range(metadata.num_columns))
    return _Form(text, entries.get(_ARROW_SCHEMA), schema.remove_metadata(), paths)


def _stored(form: _Form, child: pa.Field) -> Stored | None:
    """Return how files of a form have a column; None if a reader of Parquet gives it other values, or an error."""
    places = form.schema.get_all_field_indices(child.name)
    if not places:
        return Stored.ABSENT if child.nullable else None
    found = form.schema.field(places[0])
    if len(places) > 1 or (found.nullable and not child.nullable):
        return None
    if found.type != child.type:
        return Stored.NARROWER if (found.type, child.type) in _WIDENED else None
    if not pa.types.is_nested(child.type):
        return Stored.SAME
    begin = f"{child.name}."
    stored = [path for path in form.paths if path.startswith(begin)]
    expected = _leaves(re.escape(child.name), child.type)
    is_known = len(stored) == len(expected) and all(map(re.fullmatch, expected, stored))
    return Stored.SAME if is_known else None


def _leaves(path: str, kind: pa.DataType) -> list[str]:
    """Return patterns of the paths of the leaf columns of a column, in the form of lists of today or of the JVM.

    Where the form of the JVM has two meanings, readers that take the other one find another type.
    """
    if pa.types.is_struct(kind):
        return [leaf for child in kind for leaf in _leaves(rf"{path}\.{re.escape(child.name)}", child.type)]
    if pa.types.is_map(kind):
        entry = rf"{path}\.key_value"
        return [*_leaves(rf"{entry}\.key", kind.key_type), *_leaves(rf"{entry}\.value", kind.item_type)]
    if pa.types.is_list(kind):
        return _leaves(rf"{path}\.(list\.element|array)", kind.value_type)
    return [path]
