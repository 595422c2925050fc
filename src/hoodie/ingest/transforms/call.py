"""The transform `function`: a function of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hoodie.errors import InvalidConfigError
from hoodie.ingest.code import function_of
from hoodie.ingest.transforms.transform import Context, arrow_rows
from hoodie.table.sessions import is_spark


@dataclass(frozen=True)
class Function:
    """Calls a function with the rows; it returns the changed rows.

    `call`: a function, or `package.module:name`. The function gets a Spark DataFrame if the batch is one, otherwise an
    Arrow table or reader, and returns data of any kind that `Table.upsert` accepts.
    """

    call: Any

    def __post_init__(self) -> None:
        function_of(self.call, "transform function, call")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return what the function returns. Raises: its errors; InvalidConfigError if it returns None."""
        changed = function_of(self.call, "transform function, call")(rows if is_spark(rows) else arrow_rows(rows))
        if changed is None:
            raise InvalidConfigError(
                f"transform function {self.call!r} returned None: expected the rows, changed or not"
            )
        return changed if is_spark(changed) else arrow_rows(changed)
