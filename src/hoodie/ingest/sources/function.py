"""The source `function`: a function of the user returns the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.arguments import shown
from hoodie.errors import SourceError
from hoodie.ingest.code import function_of
from hoodie.ingest.source import Batch, Decoded, Request


@dataclass(frozen=True)
class Function:
    """Calls a function with the `Request`; it returns None (nothing new), rows, rows and a place, or a `Batch`.

    `call`: a function, or `package.module:name`. Rows are data of any kind that `Table.upsert` accepts, or `Decoded`.
    Rows without a place are a full read: the flow stores no place and stops behind them.
    """

    call: Any

    def __post_init__(self) -> None:
        function_of(self.call, "source function, call")

    def plan(self, request: Request) -> Batch | None:
        """Return the batch that the function returns. Raises: its errors; SourceError if it returns anything else."""
        found = function_of(self.call, "source function, call")(request)
        if found is None or isinstance(found, Batch):
            return found
        rows, place = found if isinstance(found, tuple) and len(found) == 2 else (found, "")
        if not isinstance(place, str):
            raise SourceError(
                f"source function {self._name}: expected a place as text, found {shown(place)}: "
                "return (rows, str(place))"
            )
        if rows is None or isinstance(rows, tuple | str | bytes | int | float):
            raise SourceError(
                f"source function {self._name}: expected None, rows, (rows, place) or a hoodie.Batch, found "
                f"{shown(rows)}"
            )
        count = rows.num_rows if isinstance(rows, pa.Table | pa.RecordBatch) else None
        return Batch(place=place, read=self._reading(rows), about=f"function {self._name}", rows=count)

    def _reading(self, rows: Any) -> Callable[[], Any]:
        """Return the function that returns the rows; a reader only once, as it has no rows for a second read."""
        inside = rows.rows if isinstance(rows, Decoded) else rows
        was_read = False

        def read() -> Any:
            nonlocal was_read
            if was_read and isinstance(inside, pa.RecordBatchReader):
                raise SourceError(
                    f"source function {self._name}: the rows are a reader, which can be read once, and the batch is "
                    "read again: return a table, or a hoodie.Batch whose read makes a new reader"
                )
            was_read = True
            return rows

        return read

    @property
    def _name(self) -> str:
        return self.call if isinstance(self.call, str) else str(getattr(self.call, "__qualname__", self.call))
