"""What a flow does with rows that cannot be decoded: refuse the batch, leave them out, or store them in a table."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from hoodie.errors import BadRowsError, InvalidConfigError
from hoodie.ingest.source import BadRows
from hoodie.table import create
from hoodie.table.sessions import is_spark, spark_room

REFUSE: Final = "refuse"
SKIP: Final = "skip"
_SAMPLES: Final = 3
_VALUE_CHARS: Final = 120
_COLUMNS: Final = pa.schema([(name, pa.string()) for name in ("id", "flow", "position", "reason", "value")])
_ID: Final = "sha2(concat_ws('|', position, CAST(number AS string), value), 256) AS id"
_NUMBERED: Final = "row_number() OVER (PARTITION BY position, value ORDER BY reason) AS number"
"""Equal values with equal positions are rows of their own: Spark has no number of a line in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRowsPolicy:
    """Whether bad rows stop a flow.

    `mode`: `refuse` (the batch is not written), `skip` (it is written without them), or the path of a table, which gets
    them with reason, position and raw value; each position once. `max`: more of them in one batch are refused.
    """

    mode: str = REFUSE
    max: int | None = None
    storage_options: tuple[tuple[str, str], ...] = ()

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
            storage_options=dict(self.storage_options),
            spark=rows.sparkSession if is_spark(rows) else False,
        )
        if is_spark(rows):
            name = flow.replace("\\", "\\\\").replace("'", "\\'")
            numbered = rows.selectExpr("*", _NUMBERED)
            table.upsert(numbered.selectExpr(_ID, f"'{name}' AS flow", "position", "reason", "value"))
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
    return "\n".join(f"  {row['position']}: {row['reason']}: {_short(row['value'])}" for row in found.to_pylist())


def _short(value: str | None) -> str:
    if value is None:
        return "null"
    return value if len(value) <= _VALUE_CHARS else f"{value[:_VALUE_CHARS]}…"
