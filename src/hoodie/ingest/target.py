"""The table that a flow writes: opened, or created with the columns of the first batch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie.errors import InvalidConfigError
from hoodie.table import Table, create, exists
from hoodie.table import open as open_table

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

        Raises: InvalidConfigError if the table does not exist and the flow must not create it; as `hoodie.open`.
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
        """Return the handle; a table that does not exist is created with these columns, a schema of Arrow or Spark.

        Raises: as `hoodie.create`.
        """
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


def options_for(path: str, storage_options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for a path in an object store; none for local paths, which have no options of stores."""
    is_object = "://" in path and not path.startswith(("file:", "memory:"))
    return dict(storage_options) if is_object else {}
