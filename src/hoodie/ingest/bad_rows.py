"""The rows of a batch that cannot be decoded: divided from the good rows, counted, and read for samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.ingest.source import BadRows, Decoded
from hoodie.table.sessions import is_spark, spark_room

REASON: Final = "_hoodie_reason"
"""Column of decoded rows: why the row cannot be used; null for good rows."""
POSITION: Final = "_hoodie_position"
"""Column of decoded rows: where in its source the row is, such as `events-0:17` or `a.json:3`."""
VALUE: Final = "_hoodie_value"
"""Column of decoded rows: the raw value as text."""
_NAMES: Final = {REASON: "reason", POSITION: "position", VALUE: "value"}


def divided(rows: Any, order: tuple[str, ...] = (), explain: Callable[[Any], Any] | None = None) -> Decoded:
    """Return rows with the columns `REASON`, `POSITION` and `VALUE`, and others, as good rows and bad ones.

    `rows`: an Arrow table or a Spark DataFrame. The good rows lack the three columns. `order`: as in `Decoded`.
    `explain`: on Spark, makes of the bad messages (`VALUE` as binary, `POSITION`) rows with their reasons.
    """
    if is_spark(rows):
        # Spark computes every column of rows that it counts.
        good, count = spark_room().divided(rows.drop(POSITION, VALUE), REASON)
        return Decoded(rows=good.drop(REASON), bad=_BadOnSpark(rows, count, explain), order=order)
    is_good = pc.is_null(rows[REASON])
    bad = rows.filter(pc.invert(is_good)).select(list(_NAMES)).rename_columns(list(_NAMES.values()))
    return Decoded(rows=rows.filter(is_good).drop_columns(list(_NAMES)), bad=BadInProcess(bad), order=order)


def counted_apart(bad: BadRows) -> BadRows:
    """Return bad rows that are counted by a read of their own: a transform may read a part of the good rows only."""
    return replace(bad, counted=lambda: None) if isinstance(bad, _BadOnSpark) else bad


@dataclass(frozen=True, slots=True)
class BadInProcess:
    """Bad rows as an Arrow table with the columns reason, position and value."""

    table: pa.Table

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.table.num_rows)

    def rows(self, limit: int | None = None) -> pa.Table:
        """Return the rows, at most `limit`."""
        return self.table.slice(0, limit)


@dataclass(frozen=True, slots=True)
class _BadOnSpark:
    """Bad rows of a frame, which is read again for them."""

    frame: Any
    counted: Callable[[], int | None]
    """The number that was counted while the good rows were read; None if it is not known."""
    explain: Callable[[Any], Any] | None = None

    def count(self) -> int:
        count = self.counted()
        return int(self.frame.where(f"{REASON} IS NOT NULL").count()) if count is None else count

    def rows(self, limit: int | None = None) -> Any:
        bad = self.frame.where(f"{REASON} IS NOT NULL")
        if self.explain is not None:
            bad = self.explain(bad.select(VALUE, POSITION))
        found = bad.selectExpr(*(f"{old} AS {new}" for old, new in _NAMES.items()))
        return found if limit is None else found.limit(limit)
