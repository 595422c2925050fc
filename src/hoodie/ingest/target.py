"""The table that a flow writes: opened, or created with the columns of the first batch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie.errors import InvalidConfigError
from hoodie.index import index_kind, index_of_view
from hoodie.table import Table, create, exists
from hoodie.table import open as open_table
from hoodie.view.table_view import TableView

_OWN: Final = ("path", "schema", "storage_options", "spark", "exist_ok")
CREATE: Final = tuple(name for name in inspect.signature(create).parameters if name not in _OWN)
"""The arguments of `hoodie.create` that a flow takes."""


@dataclass(slots=True, kw_only=True)
class Target:
    """The table of a flow.

    `create`: arguments of `hoodie.create`, for a table that does not exist; None: the table must exist. `spark`: the
    session that reads the table; False: this process.
    """

    path: str
    create: Mapping[str, Any] | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark: Any = False
    table: Table | None = None

    def __post_init__(self) -> None:
        if self.create is not None and not isinstance(self.create, Mapping):
            raise InvalidConfigError(
                f'create: expected arguments of hoodie.create such as {{"record_key": "id"}}, found {self.create!r}'
            )
        unknown = sorted(set(self.create or ()) - set(CREATE))
        if unknown:
            raise InvalidConfigError(f"create: unknown {', '.join(unknown)}: expected some of {', '.join(CREATE)}")

    def opened(self) -> Table | None:
        """Return the handle, which stays open; None if the table does not exist yet.

        Raises: InvalidConfigError if the flow must not create it.
        """
        if self.table is None and exists(self.path, storage_options=self.storage_options):
            self.table = open_table(self.path, storage_options=self.storage_options, spark=self.spark)
        if self.table is None and self.create is None:
            raise InvalidConfigError(
                f"{self.path}: there is no table; create it with hoodie.create, or let the flow create it with the "
                'columns of the first batch: create={"record_key": "id"}'
            )
        return self.table

    def made(self, columns: Any) -> Table:
        """Return the handle; a table that does not exist is created with these columns, a schema of Arrow or Spark."""
        if self.table is None:
            self.table = create(
                self.path,
                columns,
                **dict(self.create or {}),
                storage_options=self.storage_options,
                spark=self.spark,
                exist_ok=True,
            )
        return self.table

    def deciding(self, view: TableView | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns of the record key, and the others that decide what a row that deletes deletes.

        These are the ordering, and the partition where the index does not search all partitions. `view`: of the table;
        None if the flow creates the table.
        """
        if view is not None:
            config = view.config
            is_global = not config.partition_fields or index_of_view(view).is_global
            keys, ordering, partition = config.record_key_fields, config.ordering_fields, config.partition_fields
        else:
            made = self.create or {}
            keys, ordering, partition = (_listed(made.get(name)) for name in ("record_key", "ordering", "partition_by"))
            is_global = all(index_kind(name).is_global for name in _listed(made.get("index")))
        return keys, (*ordering, *(() if is_global else partition))


def _listed(names: Any) -> tuple[str, ...]:
    """Return an argument of `hoodie.create` as names; none if it is no names, which `create` refuses."""
    return (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else ()


def options_for(path: str, storage_options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for a path in an object store; none for local paths, which have no options of stores."""
    is_object = "://" in path and not path.startswith(("file:", "memory:"))
    return dict(storage_options) if is_object else {}
