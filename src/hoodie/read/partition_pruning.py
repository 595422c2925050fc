"""Leave partitions out of a read by a condition on partition columns, before any list of files is read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.index import rows_follow_columns
from hoodie.metadata.kinds.files import WantedPartitions
from hoodie.records.keys.key_generator import KeyGenerator, table_key_generator
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from hoodie.records.condition import Condition


@dataclass(frozen=True, slots=True)
class PartitionPruning:
    """The partitions in which a condition can be true.

    `fields` are the partition columns that the schema has. `is_bootstrapped`: folders have the names of the source's,
    so that a number may have several texts (`month=07`).
    """

    where: Condition
    schema: pa.Schema
    key_generator: KeyGenerator
    fields: tuple[str, ...]
    is_bootstrapped: bool

    @classmethod
    def of(
        cls, view: TableView, where: Condition, schema: pa.Schema, *, as_of: str | None = None
    ) -> PartitionPruning | None:
        """Return the pruning of a read; None if the partition paths do not determine whether the condition is true.

        Nothing is pruned if the table does not store how its paths are made, as those of JVM Hudi with a custom key
        generator. A condition without an Arrow form prunes nothing: the engine evaluates the condition for each row,
        and can compare more types. Nothing is pruned either if rows stay in their first partition when their partition
        columns change: the partition path and the partition columns of a row can then differ. `as_of` is a time that
        limits the view: the index of that state counts.

        Raises: SchemaMismatchError for unknown columns in the condition.
        """
        known = set(schema.names)
        fields = tuple(name for name in view.config.partition_fields if name in known)
        try:
            named = where.columns(schema) & set(fields)
        except UnsupportedError:
            return None
        if not named or not rows_follow_columns(view, as_of=as_of):
            return None
        try:
            where.row_filter(schema)
        except (UnsupportedError, SchemaMismatchError):
            return None
        try:
            key_generator = table_key_generator(view.config)
        except (UnsupportedError, InvalidConfigError):
            return None
        return cls(where, schema, key_generator, fields, view.config.bootstrap_base_path is not None)

    def to_list(self) -> WantedPartitions:
        """Return the partitions whose files must be listed, or a function that chooses them among all partitions.

        They are known without a list of all partitions if the condition names values of the only partition column that
        have one text each: `p = 'a'`, `p IN (1, 2)`.
        """
        only = self.key_generator
        if len(only.partition_fields) == 1 and only.fields_of_paths():
            name = only.partition_fields[0]
            if self.is_bootstrapped and not pa.types.is_string(self.schema.field(name).type):
                return self.keep

            def paths_of(values: pa.Array) -> pa.StringArray:
                return only.partition_paths(pa.RecordBatch.from_arrays([values], names=[name]))

            found = self.where.wanted_keys(self.schema, {name: paths_of})
            if found is not None and found.is_certain:
                # Null and empty text are in the default partition; they are not among the keys.
                default = paths_of(pa.nulls(1, self.schema.field(name).type))
                return found.keys | set(default.to_pylist())
        return self.keep

    def keep(self, paths: Collection[str]) -> set[str]:
        """Return the partitions, among `paths`, that can hold matching rows."""
        ordered = sorted(paths)
        values, unknown = self._values(ordered)
        can_match = self.where.partitions_to_read(self.schema, values, unknown=unknown)
        return set(pa.array(ordered, pa.string()).filter(can_match).to_pylist())

    def _values(self, paths: list[str]) -> tuple[pa.Table, dict[str, pa.BooleanArray]]:
        """Return typed partition values, a row for each path, and masks of values that the path does not determine."""
        texts = [self.key_generator.partition_values(path) for path in paths]
        columns: dict[str, pa.Array] = {}
        unknown: dict[str, pa.BooleanArray] = {}
        for name in self.fields:
            parts = [None if found is None else found.get(name) for found in texts]
            columns[name], unknown[name] = _typed(pa.array(parts, pa.string()), self.schema.field(name).type)
        return pa.table(columns), unknown


def _typed(texts: pa.StringArray, data_type: pa.DataType) -> tuple[pa.Array, pa.BooleanArray]:
    """Cast strings to strings, integers, booleans or dates; return the values and a mask of the unknown values.

    Null strings are unknown. For other types all values are unknown.
    """
    certain = (
        pa.types.is_string(data_type)
        or pa.types.is_integer(data_type)
        or pa.types.is_boolean(data_type)
        or pa.types.is_date(data_type)
    )
    if certain:
        try:
            return texts.cast(data_type), pc.is_null(texts)
        except pa.ArrowInvalid:
            pass
    return pa.nulls(len(texts), data_type), pa.repeat(True, len(texts))
