"""The rows of a batch that cannot be decoded: divided from the good rows, counted, and refused, left out or stored."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import BadRowsError, InvalidConfigError
from hoodie.ingest.source import BadRows, Decoded
from hoodie.records.sql.quoting import literal_of
from hoodie.table import create
from hoodie.table.sessions import is_spark, spark_room

REASON: Final = "_hoodie_reason"
"""Column of decoded rows: why the row cannot be used; null for good rows."""
POSITION: Final = "_hoodie_position"
"""Column of decoded rows: where in its source the row is, such as `events-0:17` or `a.json:3`."""
VALUE: Final = "_hoodie_value"
"""Column of decoded rows: the raw value as text."""
_NAMES: Final = {REASON: "reason", POSITION: "position", VALUE: "value"}
REFUSE: Final = "refuse"
SKIP: Final = "skip"
_SAMPLES: Final = 3
_VALUE_CHARS: Final = 120
_COLUMNS: Final = pa.schema([(name, pa.string()) for name in ("id", "flow", "position", "reason", "value")])
_ID: Final = "sha2(concat_ws('|', position, CAST(number AS string), value), 256) AS id"
_NUMBERED: Final = "row_number() OVER (PARTITION BY position, value ORDER BY reason) AS number"
"""Equal values with equal positions are rows of their own: Spark has no number of a line in a file."""


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
        return int(self.table.num_rows)

    def rows(self, limit: int | None = None) -> pa.Table:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRowsPolicy:
    """Whether bad rows stop a flow.

    `mode`: `refuse` (the batch is not written), `skip` (it is written without them), or the path of a table, which gets
    them with reason, position and raw value; each position once. `max`: more of them in one batch are refused.
    `storage_options`: of that table.
    """

    mode: str = REFUSE
    max: int | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.max is not None and self.max < 0:
            raise InvalidConfigError(f"bad_rows_max={self.max}: expected a number from 0")
        if self.mode == REFUSE and self.max:
            raise InvalidConfigError(
                f'bad_rows_max={self.max}: with bad_rows="refuse" no bad row is allowed; use "skip"'
            )

    def apply(self, flow: str, bad: BadRows) -> int:
        """Count the bad rows of a batch that was read, and store them; return their number.

        Raises: BadRowsError if the batch must not be written, with samples.
        """
        count = bad.count()
        allowed = 0 if self.mode == REFUSE else self.max
        if allowed is not None and count > allowed:
            raise BadRowsError(
                f"{flow}: {count:,} rows of the batch cannot be used, and {allowed:,} are allowed:\n"
                f"{_samples(bad)}\n"
                'Nothing was written. Mend the source or the schema; or pass bad_rows="skip", or bad_rows="PATH" for a '
                "table that gets them"
            )
        if count and self.mode not in {REFUSE, SKIP}:
            self._store(flow, bad)
        return count

    def _store(self, flow: str, bad: BadRows) -> None:
        """Write the bad rows; a batch that is read again has the same ids."""
        rows = bad.rows()
        table = create(
            self.mode,
            _COLUMNS,
            record_key=["flow", "id"],
            exist_ok=True,
            storage_options=self.storage_options,
            spark=rows.sparkSession if is_spark(rows) else False,
        )
        if is_spark(rows):
            numbered = rows.selectExpr("*", _NUMBERED)
            table.upsert(numbered.selectExpr(_ID, f"{literal_of(flow)} AS flow", "position", "reason", "value"))
        else:
            names = pa.array([flow] * rows.num_rows, pa.string())
            table.upsert(rows.append_column("flow", names).append_column("id", _ids(rows)).select(_COLUMNS.names))


def _ids(rows: pa.Table) -> pa.Array:
    """Return the ids of bad rows, as Spark makes them."""
    numbers: Counter[tuple[str, str]] = Counter()
    found = []
    for row in rows.to_pylist():
        numbers[row["position"], row["value"]] += 1
        parts = (row["position"], str(numbers[row["position"], row["value"]]), row["value"])
        found.append(hashlib.sha256("|".join(part for part in parts if part is not None).encode()).hexdigest())
    return pa.array(found, pa.string())


def _samples(bad: BadRows) -> str:
    rows = bad.rows(_SAMPLES)
    found: pa.Table = spark_room().to_arrow(rows) if is_spark(rows) else rows
    lines = []
    for row in found.to_pylist():
        value = "null" if row["value"] is None else row["value"]
        rest = "…" if len(value) > _VALUE_CHARS else ""
        lines.append(f"  {row['position']}: {row['reason']}: {value[:_VALUE_CHARS]}{rest}")
    return "\n".join(lines)
