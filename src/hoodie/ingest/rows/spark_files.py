"""Read many files of one format with Spark, as one DataFrame; lines of CSV and JSON that do not parse are bad rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import SourceError, UnsupportedError
from hoodie.ingest.bad_rows import POSITION, REASON, VALUE, divided
from hoodie.ingest.json_on_spark import IS_ONE_OBJECT, ROW, parse_call, valid_text
from hoodie.ingest.rows.files import RowFile
from hoodie.ingest.rows.many_files import columns_of
from hoodie.ingest.rows.rules import InputOptions
from hoodie.ingest.source import Decoded
from hoodie.records.sql.quoting import quoted
from hoodie.storage.paths import literal_path
from hoodie.table.sessions import spark_room

_THREADS: Final = 8
"""Headers of files that the driver reads at once."""
_CSV: Final = {"header": "true", "escape": '"'}
"""Spark's defaults have no header, and end a quoted field at a doubled quote."""
_LINES: Final = {"multiline": ("false",), "encoding": ("utf-8", "utf8"), "charset": ("utf-8", "utf8")}
"""Options of JSON, and the values with which files are read line by line, as texts in UTF-8."""
_NO_TEXT: Final = "\x00"
"""A text that is null in CSV and that no file has: Spark's default makes null of an empty text in quotes too."""
PLACE: Final = "_hoodie_place"
"""Column of rows: their order in the batch, by the times and paths of the files."""
_PLACE: Final = (
    "named_struct('time', _metadata.file_modification_time, 'path', _metadata.file_path, "
    f"'row', monotonically_increasing_id()) AS {PLACE}"
)
_TEXTS: Final = {
    "json": "expected a JSON object whose values have the types of the columns",
    "csv": "expected as many fields as the header has, with texts of the types of the columns",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRead:
    """Files of one format, and how Spark reads them.

    The names of the files are URIs. `options`: of Spark's reader. `rules`: types of columns of JSON and CSV; with
    `ignores_others`, other columns are not read.
    """

    session: Any
    format: str
    files: Sequence[RowFile]
    options: Mapping[str, str]
    rules: InputOptions

    @property
    def _uris(self) -> list[str]:
        return [file.name for file in self.files]

    def rows(self) -> Decoded:
        """Return the rows and their order. Nothing but schemas and headers is read before an action.

        Columns that a file lacks are null. JSON is read twice if types are inferred: Spark infers them from all lines.

        Raises: SourceError if files have conflicting types or Spark cannot read them; UnsupportedError if Spark lacks
        the format.
        """
        if self.format == "json":
            return divided(self._json(), (PLACE,))
        if self.format == "csv":
            return divided(self._csv(), (PLACE,))
        reader = self._reader()
        if self.format == "avro":
            schemas = {str(found) for found in self._each(lambda file: columns_of([file], self.rules))}
            if len(schemas) > 1:
                # Spark would take the columns of one file, and drop the others.
                reader = reader.schema(self._struct(columns_of(self.files, self.rules)))
        else:
            reader = reader.option("mergeSchema", "true")
        frame = self._load(reader, self._uris)
        has_own = "_metadata" in frame.columns  # of the files: it hides Spark's column
        return Decoded(rows=frame) if has_own else Decoded(rows=frame.selectExpr("*", _PLACE), order=(PLACE,))

    def _json(self) -> Any:
        known = self.rules.types
        own = {*known.names}
        struct = self._struct(known) if own else None
        if struct is None or not self.rules.ignores_others:
            found = self._load(self._reader(), self._uris).schema
            for child in found.fields:
                if child.name != VALUE and child.name not in own:
                    struct = (struct or type(found)()).add(child)
        if struct is None:
            where = ", ".join(self._uris[:3])
            raise SourceError(f"{where}: expected JSON lines, found no line with a JSON object; check the format")
        given = ((key.lower(), str(value).lower()) for key, value in self.options.items())
        if all(value in _LINES.get(key, (value,)) for key, value in given):
            return self._json_lines(struct)
        names = [child.name for child in struct.fields]
        return self._with_reason(self._load(self._reader().schema(struct.add(VALUE, "string")), self._uris), names)

    def _json_lines(self, struct: Any) -> Any:
        """Parse each line as the only element of a list: Spark's reader ignores what follows the object of a line.

        It also makes Infinity of a number beyond a double, and accepts a line that is no UTF-8.
        """
        lines = self._load(self.session.read.format("text").options(**self.options), self._uris)
        # Spark's option basePath makes columns of the folders.
        folders = [name for name in lines.columns if name != "value"]
        struct = type(struct)([child for child in struct.fields if child.name not in folders])
        parse = parse_call("value", _type_text(struct), self.options)
        found = lines.selectExpr(*map(quoted, lines.columns), f"_metadata.file_path AS {POSITION}", _PLACE, parse)
        valid = valid_text("value", self.session.version)
        columns = {child.name: f"{ROW}.{quoted(child.name)}" for child in struct.fields}
        floats = [columns[one.name] for one in struct.fields if one.dataType.simpleString() in ("float", "double")]
        checks = (f"coalesce(abs({column}) < double('Infinity') OR isnan({column}), true)" for column in floats)
        is_finite = f"(contains(value, 'Infinity') OR {' AND '.join(['true', *checks])})"
        is_good = f"coalesce({IS_ONE_OBJECT} AND value = {valid} AND {is_finite}, false)"
        return found.where(r"value RLIKE r'\S'").selectExpr(
            *(f"{column} AS {quoted(name)}" for name, column in columns.items()),
            *map(quoted, folders),
            f"CASE WHEN NOT {is_good} THEN '{_TEXTS['json']}' END AS {REASON}",
            f"CASE WHEN NOT {is_good} THEN {valid} END AS {VALUE}",
            POSITION,
            PLACE,
        )

    def _csv(self) -> Any:
        if self._option("header", "true").lower() != "true":
            return self._csv_group(self._uris, None)
        headers = self._each(lambda file: _header(file, self._option("sep", self._option("delimiter", ","))))
        groups: dict[tuple[str, ...], list[str]] = {}
        for header, uri in zip(headers, self._uris, strict=True):
            groups.setdefault(header, []).append(uri)
        frames = [self._csv_group(uris, header) for header, uris in groups.items()]
        types: dict[str, tuple[str, str]] = {}
        for frame, uris in zip(frames, groups.values(), strict=True):
            for child in frame.schema.fields:
                kind, first = types.setdefault(child.name, (child.dataType.simpleString(), uris[0]))
                if kind != child.dataType.simpleString():
                    raise SourceError(
                        f"column {child.name!r} has the type {kind} in {first}, but {child.dataType.simpleString()} in "
                        f"{uris[0]}: expected one type in all files of a batch; give the flow a schema"
                    )
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)

    def _csv_group(self, uris: Sequence[str], header: tuple[str, ...] | None) -> Any:
        """Read files of one header: Spark finds columns by their place."""
        known = self.rules.types
        names = known.names if header is None else [*header]
        if known.names and set(names) <= set(known.names):
            struct = self._struct(pa.schema([known.field(name) for name in names]))
        else:
            infers = not (known.names and self.rules.ignores_others)
            found = self._load(self._reader().option("inferSchema", str(infers).lower()), uris).schema
            own = {child.name: child.dataType for child in self._struct(known).fields} if known.names else {}
            struct = type(found)()
            for name, child in zip(names or found.names, found.fields, strict=True):
                struct.add(name, own.get(name, child.dataType))
        names = list(struct.names)
        frame = self._with_reason(self._load(self._reader().schema(struct.add(VALUE, "string")), uris), names)
        others = {*names} - {*known.names}
        return frame.drop(*others) if known.names and self.rules.ignores_others else frame

    def _with_reason(self, frame: Any, names: Sequence[str]) -> Any:
        # The reason depends on all columns: Spark parses the columns that a query reads, and finds bad values in those.
        columns = ", ".join(map(quoted, names))
        reason = (
            f"CASE WHEN {VALUE} IS NULL THEN NULL WHEN length(to_json(struct({columns}))) < 0 THEN '' "
            f"ELSE '{_TEXTS[self.format]}' END AS {REASON}"
        )
        return frame.selectExpr("*", reason, f"_metadata.file_path AS {POSITION}", _PLACE)

    def _reader(self) -> Any:
        reader = self.session.read.format(self.format)
        if self.format in _TEXTS:
            reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=VALUE)
        if self.format == "csv":
            reader = reader.options(**_CSV, nullValue=next(iter(self.rules.null_texts), _NO_TEXT))
        return reader.options(**self.options)

    def _option(self, name: str, default: str) -> str:
        return next((value for key, value in self.options.items() if key.lower() == name), default)

    def _struct(self, schema: pa.Schema) -> Any:
        # One row: a Connect session refuses a table without rows.
        row = pa.table({child.name: pa.nulls(1, child.type) for child in schema})
        return spark_room().from_arrow(self.session, row).schema

    def _load(self, reader: Any, uris: Sequence[str]) -> Any:
        with self._spark_errors():
            frame = reader.load([literal_path(uri) for uri in uris])
            # A Connect session plans a read when its schema is needed.
            frame.schema  # noqa: B018
            return frame

    def _each(self, function: Callable[[RowFile], Any]) -> list[Any]:
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(function, self.files))

    @contextmanager
    def _spark_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
                raise
            text = str(error).partition("\n")[0]
            if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find" in text:
                raise UnsupportedError(
                    f"Spark has no format {self.format!r}: expected its package on the class path, such as "
                    "spark.jars.packages=org.apache.spark:spark-avro_2.13:<version of Spark>"
                ) from error
            if self.format == "parquet":
                # Names the files, if their columns conflict.
                columns_of(self.files, self.rules)
            raise SourceError(
                f"Spark cannot read {len(self._uris)} {self.format} files ({self._uris[0]}, …): {text}"
            ) from error


def _type_text(kind: Any) -> str:
    """Return a type of Spark as SQL has it, with quoted names."""
    if hasattr(kind, "fields"):
        return f"struct<{', '.join(f'{quoted(child.name)}: {_type_text(child.dataType)}' for child in kind.fields)}>"
    if hasattr(kind, "elementType"):
        return f"array<{_type_text(kind.elementType)}>"
    if hasattr(kind, "keyType"):
        return f"map<{_type_text(kind.keyType)}, {_type_text(kind.valueType)}>"
    return str(kind.simpleString())


def _header(file: RowFile, separator: str) -> tuple[str, ...]:
    try:
        with io.TextIOWrapper(io.BufferedReader(file.unpacked()), encoding="utf-8-sig", newline="") as text:
            return tuple(next(csv.reader(text, delimiter=separator), ()))
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:
        raise SourceError(f"{file.name}: expected a CSV file, but its header cannot be read ({error})") from error
