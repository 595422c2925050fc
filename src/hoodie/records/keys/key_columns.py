"""How rows name records: by Hudi's meta columns where they have them, else by the key columns in the table's types.

Keys are made of the text of values, so a value must have the table's type first: the text of a timestamp in
nanoseconds is another one than that of the same moment in microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.table_schema import conform
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator

_META = {name: pa.schema([pa.field(name, pa.string(), nullable=False)]) for name in (RECORD_KEY, PARTITION_PATH)}


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Makes record keys and partition paths of rows that may have no other columns. `schema` is the table's."""

    generator: KeyGenerator
    schema: pa.Schema

    def needed(self, names: Sequence[str]) -> list[str]:
        """Which of a row's columns tell its key and its partition path."""
        wanted = {
            RECORD_KEY,
            PARTITION_PATH,
            *_top_level(self.generator.record_key_fields),
            *_top_level(self.generator.partition_fields),
        }
        return [name for name in names if name in wanted]

    def tells_paths(self, names: Sequence[str]) -> bool:
        """Whether columns of these names tell the partition path of a row."""
        return PARTITION_PATH in names or set(_top_level(self.generator.partition_fields)) <= set(names)

    def record_keys(self, rows: pa.RecordBatch) -> pa.StringArray:
        """Record key of every row.

        Raises: SchemaMismatchError if neither the key columns nor `_hoodie_record_key` are there, or do not fit the
        table's types; RecordKeyError for null and empty keys.
        """
        names, fields = rows.schema.names, self.generator.record_key_fields
        if RECORD_KEY in names:
            return _meta_column(rows, RECORD_KEY)
        if not set(_top_level(fields)) <= set(names):
            raise SchemaMismatchError(
                f"keys are told by the record key columns {list(fields)} or by {RECORD_KEY}, found columns {names}"
            )
        return self.generator.record_keys(self._typed(rows, fields))

    def partition_paths(self, rows: pa.RecordBatch) -> pa.StringArray | None:
        """Partition path of every row; None where the columns do not tell.

        Raises: SchemaMismatchError, PartitionPathError.
        """
        names = rows.schema.names
        if PARTITION_PATH in names:
            return _meta_column(rows, PARTITION_PATH)
        if not self.tells_paths(names):
            return None
        return self.generator.partition_paths(self._typed(rows, self.generator.partition_fields))

    def table_of(self, values: pa.Array) -> pa.Table:
        """Bare values as a table of keys: of the key column in tables with one, else texts of whole record keys.

        Texts stand for whole record keys too where the key column holds no text.

        Raises: SchemaMismatchError for values of several key columns that are no texts.
        """
        fields = self.generator.record_key_fields
        is_text = _is_text(values.type)
        if len(fields) == 1 and (not is_text or _is_text(self._type_of(fields[0]))):
            first, *rest = fields[0].split(".")
            for name in reversed(rest):
                values = pa.StructArray.from_arrays([values], names=[name])
            return pa.table({first: values})
        if not is_text and len(values):
            raise SchemaMismatchError(
                f"keys of the columns {list(fields)}: expected a table with these columns, or whole record keys as "
                f"texts such as {','.join(f'{name}:...' for name in fields)!r}, found values of type {values.type}"
            )
        return pa.table({RECORD_KEY: values.cast(pa.string())})

    def _type_of(self, field: str) -> pa.DataType:
        here: pa.DataType = pa.struct(list(self.schema))
        for part in field.split("."):
            here = here.field(part).type
        return here

    def _typed(self, rows: pa.RecordBatch, fields: Sequence[str]) -> pa.RecordBatch:
        """The columns of these fields, in the types of the table; nulls are for the key generator to judge."""
        names = _top_level(fields)
        if not names:  # A batch without columns would forget how many rows it has.
            return rows
        return conform(rows.select(names), pa.schema([_optional(self.schema.field(name)) for name in names]))


def _is_text(data_type: pa.DataType) -> bool:
    found = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found))


def _top_level(fields: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(field.split(".")[0] for field in fields))


def _meta_column(rows: pa.RecordBatch, name: str) -> pa.StringArray:
    return conform(rows.select([name]), _META[name]).column(0)


def _optional(field: pa.Field) -> pa.Field:
    """The field without any demand for values: rows that only name a key need not fill the struct around it."""
    if pa.types.is_struct(field.type):
        return pa.field(field.name, pa.struct([_optional(child) for child in field.type.fields]))
    return field.with_nullable(True)
