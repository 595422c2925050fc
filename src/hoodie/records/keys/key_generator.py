"""The key generator of a table: it makes record keys and partition paths of whole batches.

On-disk format: docs/format/table.md §3.3 and §3.4; checked by tests/golden/keys. One class covers every kind: a kind
determines how keys are joined and how each partition field becomes text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.writes import NEW_KEY_ENCODING
from hoodie.errors import InvalidConfigError, PartitionPathError, RecordKeyError, UnsupportedError
from hoodie.format.schema.java_text import java_text
from hoodie.format.table.call_options import PARTITION_PATH_FIELD, PATH_TYPES, partition_types
from hoodie.format.table.key_generator import KeyGeneratorType, inferred_key_generator
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.table_keys import TIMEBASED_PREFIX
from hoodie.format.table.versions import TableVersion
from hoodie.records.keys.partition_path import check_paths, component_texts, is_missing, partition_component
from hoodie.records.keys.timestamp_path import TimestampFormat, timestamp_format

_NULL_KEY_PART: Final = "__null__"
"""Represents null in a key of several fields. On disk: do not change."""
_TIME_PARSERS: Final = tuple(f"hoodie.{room}keygen.datetime.parser.class" for room in ("", "deltastreamer."))
_DEFAULT_PARSER: Final = ".HoodieDateTimeParser"
_EMPTY_KEY_PART: Final = "__empty__"
"""Represents empty text in a key of several fields. On disk: do not change."""
# The JVM's kinds for SQL and automatic keys: their paths equal those of the ordinary kind for the same fields.
_WRAPPERS: Final = frozenset(
    {
        KeyGeneratorType.AUTO_RECORD,
        KeyGeneratorType.SPARK_SQL,
        KeyGeneratorType.SPARK_SQL_UUID,
        KeyGeneratorType.SPARK_SQL_MERGE_INTO,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGenerator:
    """Makes record keys and partition paths from columns; build it with `table_key_generator`."""

    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    with_names: bool | None
    """Whether keys are written as `field:value`, not as the bare value of the only field; None if only the stored keys
    show it (`view.stored_keys`)."""
    has_two_encodings: bool
    """Whether tables of this version have keys of either kind, so that stored rows decide `with_names`."""
    time_formats: tuple[TimestampFormat | None, ...] | None = field(repr=False)
    """Per partition field, the time format; None: the field is written as the value's text. None for all: the table
    does not store which fields are times, and the caller did not name their types; or see `refusal`."""
    hive_style: bool
    url_encode: bool
    slash_separated_dates: bool
    refusal: str = ""
    """Why no partition path can be made, beside `time_formats`: the table has paths that only JVM Hudi makes."""
    path_limits: tuple[int, int] | None = None
    """Of a write: the greatest bytes of a folder's name and of a partition path; see `StoreSpec.folder_limits`."""

    def record_keys(self, batch: pa.RecordBatch, *, stored: bool = False) -> pa.StringArray:
        """Return the record key of every row, never null: the bare value of one field, or `f1:v1,f2:v2` with names.

        Nested fields are written with dots. With names, some parts may be null or empty, but not all parts of a key.
        `stored`: the rows are in a table, so that keys that other values make too are not refused.

        Raises:
            InvalidConfigError: as `expect_known_encoding`.
            RecordKeyError: a key field is missing, or keys are null, empty or ambiguous; it contains the count and
                three examples.
            UnsupportedError: the table has no key fields: its keys are generated, not read from columns.
        """
        if not self.record_key_fields:
            raise UnsupportedError("the table generates its record keys; they cannot be made from columns")
        fields = self.record_key_fields
        with_names = self.expect_known_encoding()
        parts = [_key_part(batch, name) for name in fields]
        if not with_names:
            _refuse_rows(is_missing(parts[0]), fields, "null or empty", parts)
            return parts[0]
        _refuse_rows(reduce(pc.and_, map(is_missing, parts)), fields, "all parts are null or empty", parts)
        if len(fields) > 1 and not stored:
            _refuse_ambiguous(batch, fields, parts)
        pieces: list[pa.Array | str] = []
        for position, (name, text) in enumerate(zip(fields, parts, strict=True)):
            marked = pc.if_else(pc.equal(pc.binary_length(text), 0), _EMPTY_KEY_PART, text)
            pieces += [f"{',' if position else ''}{name}:", pc.fill_null(marked, _NULL_KEY_PART)]
        return pc.binary_join_element_wise(*pieces, "")

    def expect_known_encoding(self) -> bool:
        """Return `with_names`. Raises: InvalidConfigError if neither properties nor stored keys decide it."""
        if self.with_names is None:
            name = self.record_key_fields[0]
            raise InvalidConfigError(
                f"keys of one field of a COMPLEX key generator are `v` or `{name}:v` in this table version: Hudi "
                f"0.15.0 and 1.0.0 to 1.0.2 write `v`, other releases `{name}:v`; set the option "
                f"{NEW_KEY_ENCODING.key} to true for `v`, to false for `{name}:v`"
            )
        return self.with_names

    def expect_known_paths(self) -> tuple[TimestampFormat | None, ...]:
        """Return `time_formats`.

        Raises: UnsupportedError for paths that only JVM Hudi makes; InvalidConfigError if the types of the partition
        fields are not known.
        """
        if self.refusal:
            raise UnsupportedError(self.refusal)
        if self.time_formats is None:
            raise InvalidConfigError(
                f"expected the type SIMPLE or TIMESTAMP of each partition field ({', '.join(self.partition_fields)}) "
                f"of a custom key generator, found none in the table; writes take them in the option "
                f"{PARTITION_PATH_FIELD}, for example "
                f"{','.join(f'{name}:SIMPLE' for name in self.partition_fields)}, and new tables in partition_by="
            )
        return self.time_formats

    def partition_paths(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the partition path of every row, never null: `""` in tables without partitions.

        Each distinct value is converted to text once.

        Raises:
            InvalidConfigError: as `expect_known_paths`.
            PartitionPathError: a partition field is missing or its type has no text, or a path is outside the table's
                folder or longer than the limits.
        """
        if not self.partition_fields:
            return pa.repeat(pa.scalar("", pa.string()), batch.num_rows)
        encoded = [
            self._component(batch, name, time_format)
            for name, time_format in zip(self.partition_fields, self.expect_known_paths(), strict=True)
        ]
        if len(encoded) == 1:
            check_paths(encoded[0].dictionary, limits=self.path_limits, url_encode=self.url_encode)
            return pc.take(encoded[0].dictionary, encoded[0].indices)
        texts = [pc.take(component.dictionary, component.indices) for component in encoded]
        distinct = pc.binary_join_element_wise(*texts, "/").dictionary_encode()
        check_paths(distinct.dictionary, limits=self.path_limits, url_encode=self.url_encode)
        return pc.take(distinct.dictionary, distinct.indices)

    def fields_of_paths(self) -> frozenset[str]:
        """Return the partition fields whose value is equal in all rows of a path, unless it is null or empty text.

        Formatted times are left out: a day is the path of many times. So are the fields of a slash-separated path, in
        which a text and a date have one form.
        """
        if self.time_formats is None or self.slash_separated_dates:
            return frozenset()
        written = zip(self.partition_fields, self.time_formats, strict=True)
        return frozenset(name for name, time_format in written if time_format is None)

    def partition_values(self, path: str) -> dict[str, str | None] | None:
        """Return the text of each partition column in a partition path, for pruning.

        A text of None means null or empty. Fields written as formatted times are left out: their text is not the
        column's value. The whole result is None if the values cannot be read from the path: slashes inside values, or
        types that are not known.
        """
        if not self.partition_fields:
            return {} if path == "" else None
        texts = component_texts(path, self.partition_fields, hive_style=self.hive_style, url_encode=self.url_encode)
        if texts is None or self.time_formats is None:
            return None
        kept = [name for name, written in zip(self.partition_fields, self.time_formats, strict=True) if written is None]
        values = {name: texts[name] for name in kept}
        if self.slash_separated_dates:
            return {name: text.replace("/", "-") if text else text for name, text in values.items()}
        return values

    def _component(self, batch: pa.RecordBatch, name: str, written: TimestampFormat | None) -> pa.DictionaryArray:
        """Return a field's part of the path, as a dictionary of distinct texts; nulls refer to the default's text."""
        found = _column_of(batch, name)
        if found is None:
            raise PartitionPathError(
                f"partition field {name!r} is not in the data, which has {', '.join(batch.schema.names)}"
            )
        array, _ = found
        if not pa.types.is_dictionary(array.type):
            if pa.types.is_nested(array.type):
                # The conversion to text refuses lists and structs, with type and name in the error.
                array = pa.DictionaryArray.from_arrays(pa.array(range(0), pa.int32()), array.slice(0, 0))
            else:
                array = pc.dictionary_encode(array, null_encoding="encode")
        elif array.null_count:
            array = pc.dictionary_encode(array.dictionary_decode(), null_encoding="encode")
        try:
            text = written.text(array.dictionary) if written else java_text(array.dictionary)
        except (UnsupportedError, PartitionPathError) as error:
            raise PartitionPathError(f"partition field {name!r}: {error}") from error
        text = partition_component(text, name, hive_style=self.hive_style, url_encode=self.url_encode)
        if self.slash_separated_dates and written is None:
            _refuse_slashes(text, name)
            text = pc.replace_substring(text, "-", "/")
        return pa.DictionaryArray.from_arrays(array.indices, text)


def _refuse_slashes(texts: pa.StringArray, name: str) -> None:
    """Raises: PartitionPathError for a text that has the folder of the same text with hyphens."""
    bad = texts.filter(pc.match_substring(texts, "/"))
    if len(bad):
        raise PartitionPathError(
            f"partition field {name!r}: expected dates such as 2026-07-01, which become folders 2026/07/01, found "
            f"{len(bad)} texts with slashes, e.g. {bad[0].as_py()!r}, which have the folders of other values"
        )


def table_key_generator(config: TableConfig, properties: Mapping[str, str] | None = None) -> KeyGenerator:
    """Return the key generator of a table.

    If the table does not store `hoodie.keygen.timebased.*`, these options are taken from `properties`, the options of a
    write. The JVM stores them for the timestamp key generator, but not for the custom key generator. So are the types
    of the partition fields of a custom key generator, which tables of version 6 do not store.

    In tables of version 8, the encoding of keys can be unknown: use `view.stored_keys.view_key_generator` to make
    record keys.

    Raises: UnsupportedError for a key generator that exists only in JVM Hudi; InvalidConfigError for fields, types and
    options that contradict the kind, and for an encoding of keys that the table version does not have.
    """
    given = properties or {}
    types = partition_types(config, given)
    is_typed = bool(types) or not config.partition_fields or config.key_generator is not KeyGeneratorType.CUSTOM
    kind, keys, partitions = config.key_generator, config.record_key_fields, config.partition_fields
    if kind in _WRAPPERS:
        kind = inferred_key_generator(keys, partitions)
    if kind in (KeyGeneratorType.NON_PARTITION, KeyGeneratorType.GLOBAL_DELETE, KeyGeneratorType.TABLE_METADATA):
        partitions = ()
    _check_fields(kind, keys, partitions)
    types = _field_types(kind, partitions, types if is_typed else ["SIMPLE"] * len(partitions))
    prefix = TIMEBASED_PREFIX
    options = {key.removeprefix(prefix): text for key, text in given.items() if key.startswith(prefix)}
    times = timestamp_format({**options, **config.timestamp_options}) if "TIMESTAMP" in types else None
    refusal = "" if times is None else _unknown_parser(config.raw)
    time_formats = tuple(times if one == "TIMESTAMP" else None for one in types)
    is_set = NEW_KEY_ENCODING.key in {**config.raw, **given}
    is_bare = NEW_KEY_ENCODING.get(given, config.raw) if is_set else None
    with_names = _with_names(kind, keys, config.version, is_bare)
    if with_names is None and not config.populates_meta_fields:
        with_names = True  # no file stores the keys
    return KeyGenerator(
        record_key_fields=keys,
        partition_fields=partitions,
        with_names=with_names,
        has_two_encodings=_has_two_encodings(kind, keys, config.version),
        time_formats=time_formats if is_typed and not refusal else None,
        hive_style=config.is_hive_style,
        url_encode=config.is_url_encoded,
        # The JVM separates the dates of a single field, and those of each simple field of a custom key generator.
        slash_separated_dates=config.has_slash_separated_dates
        and (len(partitions) == 1 or kind is KeyGeneratorType.CUSTOM),
        refusal=refusal,
    )


def _unknown_parser(raw: Mapping[str, str]) -> str:
    """Return why the times of a table's paths cannot be made; empty for the parser of Hudi."""
    for key in _TIME_PARSERS:
        if not raw.get(key, _DEFAULT_PARSER).endswith(_DEFAULT_PARSER):
            return (
                f"{key}={raw[key]}, a property of the table, is a class of the JVM that parses the times of partition "
                "paths; write to the table with JVM Hudi"
            )
    return ""


def _check_fields(kind: KeyGeneratorType, keys: tuple[str, ...], partitions: tuple[str, ...]) -> None:
    if kind == KeyGeneratorType.USER_PROVIDED:
        raise UnsupportedError(
            "the table's key generator is a user-defined JVM class; write to the table with JVM Hudi"
        )
    if kind in (KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP):
        if len(keys) > 1:
            raise InvalidConfigError(f"{kind} keys have one record key field, found {', '.join(keys)}: use COMPLEX")
        if len(partitions) != 1:
            raise InvalidConfigError(f"{kind} keys have one partition field, found {len(partitions)}: use COMPLEX")
    for names in (keys, partitions):
        if len(set(names)) != len(names) or not all(names):
            raise InvalidConfigError(f"expected each field once and no empty name, found {', '.join(map(repr, names))}")


def _field_types(kind: KeyGeneratorType, partitions: tuple[str, ...], given: Sequence[str]) -> tuple[str, ...]:
    if kind == KeyGeneratorType.TIMESTAMP:
        return ("TIMESTAMP",)
    if kind != KeyGeneratorType.CUSTOM:
        return ("SIMPLE",) * len(partitions)
    types = tuple(name.upper() for name in given)
    if len(types) != len(partitions) or not set(types) <= PATH_TYPES:
        raise InvalidConfigError(
            f"a CUSTOM key generator needs SIMPLE or TIMESTAMP for each partition field ({', '.join(partitions)}), "
            f"found {', '.join(types) or 'none'}: write them as field:SIMPLE,field2:TIMESTAMP"
        )
    return types


def _has_two_encodings(kind: KeyGeneratorType, keys: tuple[str, ...], version: TableVersion) -> bool:
    return len(keys) == 1 and kind == KeyGeneratorType.COMPLEX and not version.names_single_complex_key


def _with_names(kind: KeyGeneratorType, keys: tuple[str, ...], version: TableVersion, bare: bool | None) -> bool | None:
    if len(keys) != 1:
        return True
    if kind not in (KeyGeneratorType.COMPLEX, KeyGeneratorType.GLOBAL_DELETE):
        return False
    if _has_two_encodings(kind, keys, version):
        return None if bare is None else not bare
    if bare:
        raise InvalidConfigError(
            f"{NEW_KEY_ENCODING.key}=true: keys of a table of version {version.value} have the form `{keys[0]}:v`; "
            "omit the option"
        )
    return True


def _column_of(batch: pa.RecordBatch, name: str) -> tuple[pa.Array, pa.Array | None] | None:
    """Return a column and a mask of the rows where a struct around it is null; None if there is no such column.

    Names of nested columns have dots. The mask is None where no struct is null. The values inside a null struct are
    null.
    """
    first, *rest = name.split(".")
    position = batch.schema.get_field_index(first)
    if position < 0:
        return None
    array, absent = batch.column(position), None
    for step in rest:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(step) < 0:
            return None
        if array.null_count:
            absent = array.is_null()
        array = pc.struct_field(array, step)
    return array, absent


def _key_part(batch: pa.RecordBatch, name: str) -> pa.StringArray:
    found = _column_of(batch, name)
    if found is None:
        raise RecordKeyError(f"record key field {name!r} is not in the data, which has {', '.join(batch.schema.names)}")
    array, absent = found
    if absent is not None:
        _refuse_rows(absent, [name], "the struct around it is null", [])
    try:
        return java_text(array)
    except UnsupportedError as error:
        raise RecordKeyError(f"record key field {name!r}: {error}") from error


def _refuse_ambiguous(batch: pa.RecordBatch, fields: Sequence[str], parts: Sequence[pa.StringArray]) -> None:
    """Refuse texts that make the key of other values: nothing in a key of several fields is escaped.

    `("1,b:2", "3")` and `("1", "2,b:3")` both make `a:1,b:2,b:3`. A key can be cut in another way only if a text has
    the cut before its own field or before the next one in it, and only if two fields have texts to cut.

    Raises: RecordKeyError.
    """
    columns = [_column_of(batch, name) for name in fields]
    texts = [place for place, column in enumerate(columns) if column is not None and is_text(column[0].type)]
    for place in texts:
        name, text = fields[place], parts[place]
        marks = pa.array([_NULL_KEY_PART, _EMPTY_KEY_PART])
        same = "the text is what the key contains for null and empty values, so that two records would have one key"
        _refuse_rows(pc.is_in(text, value_set=marks), [name], same, [text])
        for neighbour in fields[max(place, 1) : place + 2] if len(texts) > 1 else ():
            cut = f",{neighbour}:"
            problem = (
                f"the text contains {cut!r}, which begins a part of the key, so that two records could have one key"
            )
            _refuse_rows(pc.fill_null(pc.match_substring(text, cut), False), [name], problem, [text])


def is_text(data_type: pa.DataType) -> bool:
    """Return whether values of the type are texts, also in a dictionary."""
    found = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found))


def _refuse_rows(bad: pa.BooleanArray, fields: Sequence[str], problem: str, parts: Sequence[pa.StringArray]) -> None:
    count = pc.sum(bad).as_py() or 0
    if not count:
        return
    rows = pc.indices_nonzero(bad).slice(0, 3).to_pylist()
    shown = [f"row {row}" + "".join(f" {part[row].as_py()!r}" for part in parts) for row in rows]
    names = ", ".join(repr(name) for name in fields)
    raise RecordKeyError(
        f"record key {names}: {problem} in {count} of {len(bad)} rows ({'; '.join(shown)}); "
        f"change them or pick another key"
    )
