"""Reads of a table or query of a database: in full, or by a column whose greatest value is the place.

A batch contains the rows above the place, up to a bound that is a value: rows of equal values are never divided
between batches. The bound is chosen when the batch is planned, so a batch that is read again has the same rows, apart
from rows that changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.options import check_types, require
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.dialects import Dialect, Kind, canonical

_CAST_IT: Final = "cast the column in query, such as CAST(x AS varchar(40))"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Database(Protocol):
    """A connection to a database for the planning of one batch; its methods raise SourceError."""

    @property
    def dialect(self) -> Dialect:
        """The SQL that it reads."""
        ...

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        ...

    def kind(self, column: str) -> Kind | None:
        """Return the kind of a column's values; None if it has no values. Raises: UnsupportedError: several kinds."""
        ...

    def value(self, sql: str) -> str | None:
        """Return the one value of a query as an exact text; None for null."""
        ...


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a source of a database reads: `table` (as in SQL) or `query`, and the keys on its column."""

    table: str | None = None
    query: str | None = None
    column: str | None = None
    lag_seconds: float | None = None
    nulls: Literal["note", "error"] = "note"
    counts_lag: bool = False
    _noted: list[str | None] = field(default_factory=list, init=False, repr=False, compare=False)
    """The place before the first batch with something new that has the note on nulls; empty before it."""

    def __post_init__(self) -> None:
        check_types(self)
        if (self.table is None) == (self.query is None) or not (self.table or self.query or "").strip():
            raise InvalidConfigError(
                f"expected one of table and query, found table={self.table!r} and query={self.query!r}"
            )
        lag = self.lag_seconds
        require(lag is None or 0 <= lag < 1e9, "lag_seconds", "a number of seconds from 0", lag)
        if self.column is None and (lag is not None or self.counts_lag):
            raise InvalidConfigError(
                "lag_seconds and counts_lag: expected an incremental column beside them, found none; set column"
            )

    @property
    def relation(self) -> str:
        """The table or query in a FROM clause."""
        if self.query is None:
            return f"{self.table}"
        # A comment at its end must not hide the parenthesis.
        return f"({self.query.strip().rstrip(';')}\n) hoodie_source"

    @property
    def name(self) -> str:
        """The table or query in messages."""
        return f"{self.table}" if self.query is None else f"query {' '.join(self.query.split())[:80]!r}"

    def rows(self, selected: str, where: str | None) -> str:
        """Return the query of the rows of a condition; None: all rows."""
        return f"SELECT {selected} FROM {self.relation}{'' if where is None else f' WHERE {where}'}"


def plan_batch(
    database: Database, selection: Selection, request: Request, read: Callable[[str | None], Any]
) -> Batch | None:
    """Return the next batch, or None. `read` reads the rows of a condition; None: all rows.

    A full read has the empty place, and is the last batch of its run.
    """
    if selection.column is None:
        if request.after == "":
            return None
        notes = () if request.limit is None else (f"{selection.name}: a full read has no limit; all rows are read",)
        return Batch(place="", read=lambda: read(None), about=f"{selection.name}, all rows", notes=notes)
    column = _column(database.columns(), selection.column, selection.name)
    return _Increment(database, selection, column, request).plan(read)


def _column(columns: Sequence[str], wanted: str, where: str) -> str:
    same = [name for name in columns if name == wanted] or [n for n in columns if n.lower() == wanted.lower()]
    if len(same) != 1:
        raise InvalidConfigError(f"column: expected one of the columns of {where} ({', '.join(columns)}): {wanted!r}")
    return same[0]


@dataclass(frozen=True, slots=True)
class _Increment:
    database: Database
    selection: Selection
    column: str
    request: Request

    def plan(self, read: Callable[[str | None], Any]) -> Batch | None:
        kind = self.database.kind(self.column)
        if kind is None:
            self._refuse_nulls()
            return None
        dialect = self.database.dialect
        if kind not in dialect.literals:
            raise UnsupportedError(
                f"{self._where}: expected a number, date, timestamp or text, found {kind.value}: {_CAST_IT}"
            )
        value = dialect.value(self.column, kind)
        after = canonical(self.request.after, kind, self._where) if self.request.after else None
        above = [] if after is None else [f"{value} > {dialect.literals[kind](after)}"]
        bound = self._bound(value, above + self._settled(value, kind))
        if bound is None:
            self._refuse_nulls()
            return None
        self._check(bound, after, kind)
        notes = self._nulls()
        literal = dialect.literals[kind](canonical(bound, kind, self._where))
        where = " AND ".join([*above, f"{value} <= {literal}"])
        return Batch(
            place=bound,
            read=lambda: read(where),
            about=f"{self.selection.name} where {where}",
            lag_rows=self._count(f"{value} > {literal}") if self.selection.counts_lag else None,
            notes=(*notes, *self._late(bound, kind)),
        )

    @property
    def _where(self) -> str:
        return f"{self.selection.name}, column {self.column}"

    def _bound(self, value: str, conditions: list[str]) -> str | None:
        """Return the greatest value of the batch; None without rows."""
        found = self._greatest(value, conditions)
        if found != "":
            return found
        # As a place, the empty text stands for the begin, so the batch contains the next value too.
        found = self._greatest(value, [*conditions, f"{value} > ''"])
        if found is None:
            raise SourceError(
                f"{self._where}: expected values by which the reads go on, found the empty text only; leave such rows "
                "out by query"
            )
        return found

    def _greatest(self, value: str, conditions: list[str]) -> str | None:
        """Return the greatest value up to the limit: the row at the limit has it."""
        dialect, limit = self.database.dialect, self.request.limit
        chosen = " AND ".join([*conditions, f"{value} IS NOT NULL"])
        values = self.selection.rows(f"{value} AS hoodie_value", chosen)
        if limit is not None:
            values += f" ORDER BY {value} {dialect.first.format(rows=max(limit, 1))}"
        greatest = (dialect.exact_text or "{value}").format(value="MAX(hoodie_value)")
        return self.database.value(f"SELECT {greatest} AS hoodie_bound FROM ({values}) hoodie_values")

    def _settled(self, value: str, kind: Kind) -> list[str]:
        """Return the condition of rows that are older than the lag, by the database's clock."""
        lag = self.selection.lag_seconds
        if lag is None:
            return []
        clock = self.database.dialect.clock.get(kind)
        if clock is None:
            raise InvalidConfigError(
                f"lag_seconds: expected a timestamp or date with a clock of {self.database.dialect.name}, found "
                f"{self._where}: {kind.value}; leave lag_seconds out, or choose another column"
            )
        # The current day still gets rows.
        return [f"{value} {'<' if kind is Kind.DATE else '<='} {clock.format(seconds=f'{lag:f}')}"]

    def _nulls(self) -> list[str]:
        """Return the note on nulls, if it is due. Raises: SourceError if nulls are errors."""
        noted, request = self.selection._noted, self.request
        # A batch that is planned again has the note again.
        if self.selection.nulls == "note" and request.after and noted and noted != [request.after]:
            return []
        if not noted and not request.is_look:
            noted.append(request.after)
        count = self._count(f"{self.database.dialect.quoted(self.column)} IS NULL")
        if count and self.selection.nulls == "error":
            raise SourceError(
                f"{self._where}: expected a value in each row, found NULL in {count} rows, which no batch would "
                'contain; fill the column, or set nulls = "note" to leave these rows out'
            )
        return [f"{self._where}: {count} rows have NULL and are never read"] if count else []

    def _refuse_nulls(self) -> None:
        """Raise if a flow without a place finds nulls, and no batch that carries the note."""
        if self.request.after:
            return
        notes = self._nulls()
        if notes and self.selection.lag_seconds is None:
            raise SourceError(f"{notes[0]}; no row has a value: expected values by which the reads go on")

    def _check(self, bound: str, after: str | None, kind: Kind) -> None:
        if kind is not Kind.TEXT and bound.lower() in ("nan", "infinity", "inf"):
            raise SourceError(
                f"{self._where}: the greatest value is {bound}, and no later row would be above it; leave such rows "
                "out by query"
            )
        if after is not None and canonical(bound, kind, self._where) == after:
            raise SourceError(
                f"{self._where}: expected a value above the place {after}, found rows whose value has the same text: "
                f"its precision is finer than microseconds; {_CAST_IT}"
            )

    def _late(self, bound: str, kind: Kind) -> list[str]:
        """Return the note on days, which get more rows of the same value after the batch."""
        if kind is Kind.DATE and self.selection.lag_seconds is None:
            remedy = "set lag_seconds = 0 to read days that are over"
        elif kind is Kind.TEXT and _DAY.fullmatch(bound):
            remedy = "choose a column of timestamps"
        else:
            return []
        return [f"{self._where}: rows that get the value {bound} from now on are never read; {remedy}"]

    def _count(self, where: str) -> int:
        return int(self.database.value(self.selection.rows("COUNT(*) AS hoodie_count", where)) or 0)
