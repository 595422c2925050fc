"""The reports of a table as plain values: which there are, which parameters they have, which method makes them.

The server and the export answer from here. A list is `rows` and `next`: where to go on, or None. What was cut or cannot
be read is in `notes`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

import hoodie
from hoodie.config.secrets import masked, redacted_content
from hoodie.display import counted
from hoodie.errors import HoodieError, InvalidConfigError
from hoodie.format.json_values import rows_of

_LIMIT, _LIMIT_MAX = 200, 5_000
_OFFSET_MAX: Final = 2**31
_VERSIONS, _VERSIONS_MAX = 5, 100
_DAYS, _DAYS_MAX = 30, 3_660
_TEXT_CHARS_MAX: Final = 4_000
_ROWS_AT_ONCE: Final = 16
_VALUE_MAX: Final = 8_000
_ANSWER_MAX: Final = 8_000_000
"""Characters, or bytes, after which no row is added; the texts of the last row are `…` from there on."""
_FILES_MAX: Final = 2_000
_SUMS: Final = ("numInserts", "numUpdateWrites", "numDeletes", "numWrites", "totalWriteBytes", "totalWriteErrors")
_WHOLE_ROWS: Final = "`hoodie head TABLE --json` prints whole rows"

_STATUS: Final = {
    "TableNotFoundError": 404,
    "InstantNotFoundError": 404,
    "RecordKeyError": 404,
    "InvalidConfigError": 400,
    "SchemaMismatchError": 400,
    "UnsupportedError": 400,
    "HistoryLostError": 410,
    "ViewOvertakenError": 503,
    "StorageError": 502,
}
"""HTTP statuses of errors; 500 for others."""


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of one request. Raises: InvalidConfigError from each method for a value that does not fit."""

    given: Mapping[str, str]

    def number(self, name: str, default: int, greatest: int) -> int:
        """Return a whole number, at most `greatest`."""
        text = self.given.get(name) or str(default)
        if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
            raise InvalidConfigError(f"{name}: expected a whole number, found {text[:40]!r}")
        return min(int(text), greatest)

    @property
    def limit(self) -> int:
        """The most rows of the answer: 200, or as given up to 5,000."""
        return self.number("limit", _LIMIT, _LIMIT_MAX)

    @property
    def offset(self) -> int:
        """The rows to skip."""
        return self.number("offset", 0, _OFFSET_MAX)

    def text(self, name: str) -> str | None:
        """Return a text, or None if it is missing or empty."""
        text = self.given.get(name) or None
        if text is not None and len(text) > _TEXT_CHARS_MAX:
            raise InvalidConfigError(f"{name}: expected at most {_TEXT_CHARS_MAX:,} characters, found {len(text):,}")
        return text

    def needed(self, name: str) -> str:
        """Return a text that the request must have."""
        text = self.text(name)
        if text is None:
            raise InvalidConfigError(f"{name}: expected a value, found none")
        return text

    def flag(self, name: str) -> bool:
        """Return whether `1` is given; nothing and `0` are False."""
        text = self.given.get(name) or "0"
        if text not in ("0", "1"):
            raise InvalidConfigError(f"{name}: expected 0 or 1, found {text[:40]!r}")
        return text == "1"


@dataclass(frozen=True, slots=True)
class Report:
    """One report: what makes it, the parameters that it takes, and whether it shows rows of data."""

    make: Callable[[hoodie.Table, Query], Any]
    parameters: tuple[str, ...] = ()
    shows_data: bool = False


def answer_of(table: hoodie.Table, report: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the report of a table as plain values, as of its newest instant.

    Raises: InvalidConfigError for an unknown parameter or a value that does not fit; as the method of the report.
    """
    found = REPORTS[report]
    unknown = sorted(given.keys() - set(found.parameters))
    if unknown:
        raise InvalidConfigError(f"{report}: expected the parameters {found.parameters}, found {unknown}")
    return found.make(table, Query(given))  # type: ignore[no-any-return]


def error_of(error: Exception) -> tuple[int, dict[str, str]]:
    """Return the status and the plain values of an error. The text has no passwords."""
    name = type(error).__name__
    text = masked(str(error)) or name
    known = next((_STATUS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _STATUS), 500)
    return known, {"error": text if isinstance(error, HoodieError | OSError) else f"{name}: {text}", "type": name}


@dataclass(slots=True)
class Cut:
    """Cuts the values of one answer, and counts what it cut."""

    left: int = _ANSWER_MAX
    values: int = 0
    is_ended: bool = False

    def items(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield the values, each cut, until the answer is full."""
        for value in values:
            if self.left <= 0:
                self.is_ended = True
                return
            yield self.value(value)

    def value(self, value: Any) -> Any:
        """Return a plain value; a long text or binary value in it is cut, and has its whole length at the end."""
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [*self.items(value)]
        if not isinstance(value, str | bytes):
            self.left -= 10
            return value
        greatest = _VALUE_MAX if self.left > 0 else 0
        self.left -= min(len(value), greatest) + 10
        if len(value) <= greatest:
            return value
        self.values += 1
        start = value[:greatest] if isinstance(value, str) else base64.b64encode(value[:greatest]).decode()
        return f"{start}… ({len(value):,} {'characters' if isinstance(value, str) else 'bytes'})"

    def notes(self, whole: str) -> list[str]:
        """Return what was cut, for people; `whole` names what has all."""
        cut = [f"{counted(self.values, 'long values')} cut"] if self.values else []
        cut += [f"the answer ends after {_ANSWER_MAX:,} characters"] if self.is_ended else []
        return [f"{' and '.join(cut)}: {whole}"] if cut else []


def files_cut(content: Any, whole: str) -> tuple[Any, dict[str, Any] | None, list[str]]:
    """Return the content of a commit with the statistics of at most 2,000 files, sums of all files, and notes.

    The sums are None without statistics; those by partition are of at most 2,000 partitions.
    """
    found = content.get("partitionToWriteStats") if isinstance(content, dict) else None
    if not isinstance(found, dict):
        return content, None, []
    kept, by_partition, total = dict[str, Any](), dict[str, Any](), dict.fromkeys(("files", *_SUMS), 0)
    for path, listed in found.items():
        stats = [stat for stat in listed or () if isinstance(stat, dict)]
        sums = {"files": len(stats), **{name: sum(stat.get(name) or 0 for stat in stats) for name in _SUMS}}
        if total["files"] < _FILES_MAX:
            kept[path] = stats[: _FILES_MAX - total["files"]]
        if len(by_partition) < _FILES_MAX:
            by_partition[path] = sums
        total = {name: number + sums[name] for name, number in total.items()}
    note = f"statistics of the first {_FILES_MAX:,} of {total['files']:,} files, and the sums of all: {whole}"
    statistics = {"partitions": len(found), "all": total, "by_partition": by_partition}
    return {**content, "partitionToWriteStats": kept}, statistics, [note] * (total["files"] > _FILES_MAX)


def _listed(found: pa.Table, next_place: str | int | None = None) -> dict[str, Any]:
    from hoodie.read.inspect import notes_of

    return {"rows": [*rows_of(found)], "next": next_place, "notes": [*notes_of(found)]}


def _timeline(table: hoodie.Table, query: Query) -> dict[str, Any]:
    before, archived, metadata = query.text("before"), query.flag("archived"), query.flag("metadata")
    rows = table.inspect.timeline(query.limit, before=before, archived=archived, metadata=metadata)
    has_more = rows.num_rows >= max(query.limit, 1)
    return _listed(rows, rows["instant"][-1].as_py() if has_more else None)


def _instant(table: hoodie.Table, query: Query) -> dict[str, Any]:
    found = dict(table.inspect.instant(query.needed("time"), action=query.text("action")))
    cut, whole = Cut(), f"`hoodie show TABLE {found['instant']}` prints all"
    content, statistics, notes = files_cut(found["content"], whole)
    content = cut.value(redacted_content(content))
    return {**found, "content": content, "statistics": statistics, "notes": notes + cut.notes(whole)}


def _partitions(table: hoodie.Table, query: Query) -> dict[str, Any]:
    sort = query.text("sort") or "name"
    # One more row shows whether there is a next page.
    return _paged(table.inspect.partitions(sort=sort, limit=query.limit + 1, offset=query.offset), query)


def _slices(table: hoodie.Table, query: Query) -> dict[str, Any]:
    found = table.inspect.slices(query.given.get("partition"), limit=query.limit + 1, offset=query.offset)
    return _paged(found, query)


def _paged(found: pa.Table, query: Query) -> dict[str, Any]:
    has_more = found.num_rows > query.limit
    return _listed(found.slice(0, query.limit), query.offset + query.limit if has_more else None)


def _shown(found: pa.Table) -> dict[str, Any]:
    """Return rows of data with long values cut. Few rows at once become Python values."""
    cut, batches = Cut(), found.to_batches(max_chunksize=_ROWS_AT_ONCE)
    rows = [*cut.items(row for batch in batches for row in rows_of(batch))]
    answer = _listed(found.slice(0, 0))
    return {**answer, "rows": rows, "notes": answer["notes"] + cut.notes(_WHOLE_ROWS)}


def _rows(table: hoodie.Table, query: Query) -> dict[str, Any]:
    names = query.text("columns")
    columns = [name.strip() for name in names.split(",") if name.strip()] if names else None
    found = table.head(query.limit, columns=columns, where=query.text("where"), as_of=query.text("as_of"))
    return {**_shown(found), "columns": [{"name": each.name, "type": str(each.type)} for each in found.schema]}


def _record(table: hoodie.Table, query: Query) -> dict[str, Any]:
    cut, versions = Cut(), query.number("versions", _VERSIONS, _VERSIONS_MAX)
    found = cut.value(dict(table.inspect.record(query.needed("key"), versions)))
    return {**found, "notes": found["notes"] + cut.notes(_WHOLE_ROWS)}


REPORTS: Final[Mapping[str, Report]] = {
    "summary": Report(lambda table, _: dict(table.inspect.summary())),
    "sizes": Report(lambda table, _: dict(table.inspect.sizes())),
    "timeline": Report(_timeline, ("limit", "before", "archived", "metadata")),
    "instant": Report(_instant, ("time", "action")),
    "waits": Report(lambda table, _: _listed(table.inspect.waits())),
    "growth": Report(lambda table, q: _listed(table.inspect.growth(q.number("days", _DAYS, _DAYS_MAX))), ("days",)),
    "writers": Report(lambda table, query: _listed(table.inspect.writers(query.limit)), ("limit",)),
    "partitions": Report(_partitions, ("sort", "limit", "offset")),
    "slices": Report(_slices, ("partition", "limit", "offset")),
    "group": Report(lambda table, query: _listed(table.inspect.file_group(query.needed("file_id"))), ("file_id",)),
    "backlog": Report(lambda table, query: _listed(table.inspect.backlog(query.limit)), ("limit",)),
    "index": Report(lambda table, _: _listed(table.inspect.metadata())),
    "schemas": Report(lambda table, _: _listed(table.inspect.schemas())),
    "rows": Report(_rows, ("limit", "as_of", "where", "columns"), shows_data=True),
    "changed": Report(lambda t, q: _shown(t.inspect.changed(q.needed("instant"), q.limit)), ("instant", "limit"), True),
    "record": Report(_record, ("key", "versions"), shows_data=True),
    "flows": Report(lambda table, _: _listed(table.inspect.flows())),
    "locks": Report(lambda table, _: _listed(table.inspect.locks())),
}
"""The reports of a table, by their names in addresses."""
