"""PARTITION (…) of a statement: its values, and what INSERT OVERWRITE replaces by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from hoodie.engine import ArrowDataset
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table.table_config import TableConfig
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.records.sql.parse import to_sql
from hoodie.statements.names import Names
from hoodie.view.table_view import TableView
from hoodie.write.delete_partitions import partitions_of


@dataclass(frozen=True, slots=True)
class NamedPartition:
    """PARTITION (…) of an INSERT, which may be absent.

    `columns`: of the table's partition path, in lower case. `values`: by column, without columns whose values the query
    has. `if_not_exists`: IF NOT EXISTS follows.
    """

    columns: tuple[str, ...]
    values: Mapping[str, exp.Expression]
    if_not_exists: bool

    @classmethod
    def of(cls, partition: exp.Expression | None, config: TableConfig) -> NamedPartition:
        """Return the PARTITION of a statement.

        Raises: InvalidConfigError for a column that is not of the partition path, or is there twice; UnsupportedError
            for anything but columns and values.
        """
        values: dict[str, exp.Expression] = {}
        dynamic: list[str] = []
        for part in () if partition is None else partition.expressions:
            column = part.this if isinstance(part, exp.EQ) else part
            if not isinstance(column, exp.Column):
                raise UnsupportedError(f"PARTITION: expected columns and values, found {to_sql(part)!r}")
            if column.name.lower() in (name.lower() for name in (*values, *dynamic)):
                raise InvalidConfigError(f"PARTITION: expected each column once, found {column.name} twice")
            if isinstance(part, exp.EQ):
                values[column.name] = part.expression
            else:
                dynamic.append(column.name)
        columns = tuple(dict.fromkeys(name.partition(".")[0].lower() for name in config.partition_fields))
        if other := [name for name in (*values, *dynamic) if name.lower() not in columns]:
            raise InvalidConfigError(
                f"PARTITION: {', '.join(other)} is no partition column; the table has {', '.join(columns) or 'none'}"
            )
        return cls(columns, values, partition is not None and bool(partition.args.get("exists")))

    @classmethod
    def without_exists(cls, partition: exp.Expression, config: TableConfig) -> NamedPartition:
        """Return the PARTITION of a statement without IF NOT EXISTS. Raises: as `of`; UnsupportedError with it."""
        if partition.args.get("exists"):
            raise UnsupportedError("PARTITION … IF NOT EXISTS: expected in INSERT OVERWRITE only")
        return cls.of(partition, config)

    @property
    def is_one(self) -> bool:
        """Whether each partition column has a value, which names one partition."""
        return bool(self.columns) and {name.lower() for name in self.values} == {*self.columns}

    def overwrite(self, key: str, mode: str) -> str:
        """Return the operation of INSERT OVERWRITE. `key`, `mode`: the option that chooses it, and its value.

        Raises: InvalidConfigError for another mode; UnsupportedError in static mode for values of some partition
            columns, and for IF NOT EXISTS unless one partition is named.
        """
        if mode not in ("", "static", "dynamic"):
            raise InvalidConfigError(f"{key}={mode!r}: expected static or dynamic")
        if self.if_not_exists and not self.is_one:
            raise UnsupportedError(f"PARTITION … IF NOT EXISTS: expected a value of each of {', '.join(self.columns)}")
        if self.is_one or (mode == "dynamic" and self.columns):
            return "insert_overwrite"
        if self.values:
            raise UnsupportedError(
                f"INSERT OVERWRITE … PARTITION with values for {', '.join(self.values)} only: give all of "
                f"{', '.join(self.columns)}, or set {key}=dynamic, which replaces the partitions that the rows have"
            )
        return "insert_overwrite_table"

    def paths(self, view: TableView, names: Names, properties: Mapping[str, str]) -> tuple[str, ...]:
        """Return the path of the partition that the values name; none if they do not name one.

        `properties`: the options of the write. Raises: as `Names.constants` and `partitions_of`.
        """
        return (self._path(view, names, properties),) if self.is_one else ()

    def parts(self, view: TableView, names: Names) -> dict[int, str]:
        """Return the parts of a partition path that have a value here, by place.

        Raises: as `paths`; UnsupportedError if a column has several parts, or its part is not its value.
        """
        if table_key_generator(view.config).fields_of_paths() != {*view.config.partition_fields}:
            raise UnsupportedError(
                f"PARTITION: expected a value of each of {', '.join(self.columns)}: the paths of the table do not have "
                "one folder for each value"
            )
        named = {name.lower() for name in self.values}
        parts = enumerate(self._path(view, names, {}).split("/"))
        return {
            place: part for place, part in parts if self.columns[place : place + 1] and self.columns[place] in named
        }

    def _path(self, view: TableView, names: Names, properties: Mapping[str, str]) -> str:
        """Return the partition path of the values; columns without a value are null."""
        schema = view.schema().arrow
        by_lower = {name.lower(): name for name in schema.names}
        texts = {by_lower[name]: "NULL" for name in self.columns}
        texts |= {by_lower[name.lower()]: to_sql(value) for name, value in self.values.items()}
        (path,) = partitions_of(view, ArrowDataset(names.constants(schema, texts)), properties)
        return path
