"""What a table must hold after any sequence of operations: a dict, and the rules written as loops over rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("city", pa.string()),
        ("value", pa.float64()),
        ("note", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
CITIES = ("sf", "nyc", "la", None)
NULL_CITY = "__HIVE_DEFAULT_PARTITION__"
Identity = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One record: its columns, the partition it lies in, and the number of the commit that wrote it."""

    id: str
    ts: int | None
    city: str | None
    value: float | None
    note: str | None
    is_deleted: bool | None = None
    path: str = ""
    commit: int = -1

    def values(self) -> tuple[Any, ...]:
        """The columns of the table, in their order."""
        return (self.id, self.ts, self.city, self.value, self.note, self.is_deleted)


def path_of(city: str | None) -> str:
    """Partition path of a city."""
    return f"city={city or NULL_CITY}"


def to_arrow(rows: Iterable[Row]) -> pa.Table:
    """Rows as data to write."""
    columns = list(zip(*(row.values() for row in rows), strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


@dataclass(frozen=True)
class Rules:
    """The properties of a table that decide what a write does."""

    event_time: bool
    index: str = "simple"
    moves: bool = True
    is_merge_on_read: bool = False
    version: int | None = None
    is_deletable: bool = True
    """Whether the table has the column by which a row says that it deletes its key."""
    late: bool = True
    """Whether rows may come with lower ordering values than stored ones."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return SCHEMA if self.is_deletable else pa.schema(list(SCHEMA)[:-1])

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not just in its partition."""
        return self.index in ("record", "global_simple", "global_bloom", "hbase", "automatic")

    def identity(self, row: Row) -> Identity:
        """What makes two rows the same record."""
        return (row.id,) if self.is_global else (path_of(row.city), row.id)

    def wins(self, newer: Row, older: Row) -> bool:
        """Whether the newer row replaces the older one: null is the lowest ordering value, ties go to the newer."""
        if not self.event_time or older.ts is None:
            return True
        return newer.ts is not None and newer.ts >= older.ts


@dataclass
class Counts:
    """What a write does with the rows of its batch and of the table."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    ignored: int = 0
    duplicates: int = 0


@dataclass
class Model:
    """The table as a dict, all its earlier states, and the counts of the last write."""

    rules: Rules
    rows: dict[Identity, Row] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    history: list[dict[Identity, Row]] = field(default_factory=list)

    @property
    def commit(self) -> int:
        """Number of the commit that is being made."""
        return len(self.history)

    def done(self) -> None:
        """The commit is complete."""
        self.history.append(dict(self.rows))

    def take_back(self, commits: int) -> None:
        """Forget the newest commits."""
        del self.history[len(self.history) - commits :]
        self.rows = dict(self.history[-1]) if self.history else {}

    def upsert(self, batch: list[Row]) -> None:
        """Merge the batch with itself, then with the table."""
        winners: dict[Identity, Row] = {}
        for row in batch:
            key = self.rules.identity(row)
            if key not in winners or self.rules.wins(row, winners[key]):
                winners[key] = row
        self.counts = Counts(duplicates=len(batch) - len(winners))
        for key, row in winners.items():
            stored = self.rows.get(key)
            if (stored is None and row.is_deleted) or (stored is not None and not self.rules.wins(row, stored)):
                self.counts.ignored += 1
            elif stored is None:
                self.counts.inserted += 1
                self._put(key, row, path_of(row.city))
            elif row.is_deleted:
                self.counts.deleted += 1
                del self.rows[key]
            else:
                self.counts.updated += 1
                self._put(key, row, path_of(row.city) if self.rules.moves else stored.path)

    def insert(self, batch: list[Row]) -> None:
        """Add rows with new keys; those that say they are deleted add nothing."""
        gone = sum(bool(row.is_deleted) for row in batch)
        self.counts = Counts(inserted=len(batch) - gone, ignored=gone)
        for row in batch:
            if not row.is_deleted:
                self._put(self.rules.identity(row), row, path_of(row.city))

    def delete(self, batch: list[Row]) -> None:
        """Delete keys, whatever their ordering values."""
        before = len(self.rows)
        for row in batch:
            self.rows.pop(self.rules.identity(row), None)
        deleted = before - len(self.rows)
        self.counts = Counts(deleted=deleted, ignored=len(batch) - deleted)

    def update(self, change: Callable[[Row], Row], matches: Callable[[Row], bool]) -> None:
        """Change the rows that match."""
        self.counts = Counts()
        for key, row in list(self.rows.items()):
            if matches(row):
                self.counts.updated += 1
                self.rows[key] = replace(change(row), commit=self.commit)

    def drop(self, matches: Callable[[Row], bool]) -> None:
        """Take the rows out that match."""
        kept = {key: row for key, row in self.rows.items() if not matches(row)}
        self.counts = Counts(deleted=len(self.rows) - len(kept))
        self.rows = kept

    def overwrite(self, batch: list[Row], *, whole_table: bool) -> None:
        """Replace the touched partitions, or the table, by the batch."""
        touched = {path_of(row.city) for row in batch if not row.is_deleted}
        self.drop(lambda row: whole_table or row.path in touched)
        deleted = self.counts.deleted
        self.insert(batch)
        self.counts.deleted = deleted

    def changes(self, since: int, until: int) -> set[tuple[Any, ...]]:
        """Rows as of `until` that a later commit than `since` wrote."""
        return {row.values() for row in self.history[until].values() if since < row.commit}

    def _put(self, key: Identity, row: Row, path: str) -> None:
        self.rows[key] = replace(row, path=path, commit=self.commit)


ANY_RULES = Rules(event_time=True)


def random_row(rng: random.Random, key: str, rules: Rules = ANY_RULES) -> Row:
    """A row with nulls, ties, and now and then a delete, if the table has such."""
    # The draws keep their order: fixed seeds stand for known sequences, in tests of the JVM too.
    ts = rng.choice([None, 0, 1, 2, 3, rng.randrange(100)])
    city = rng.choices(CITIES, [5, 3, 1, 1])[0]
    value = rng.choice([None, 0.0, -1.5, float(rng.randrange(1000))])
    note = rng.choice([None, "", "é", "x" * rng.randrange(40)])
    is_deleted = rng.choices([None, False, True], [3, 3, 1])[0] if rules.is_deletable else None
    if is_deleted and ts is None and rules.is_merge_on_read:
        ts = 0  # In a log a delete without an ordering value wins always, as with the JVM.
    return Row(id=key, ts=ts, city=city, value=value, note=note, is_deleted=is_deleted)


def random_batch(rng: random.Random, rows_max: int, keys: int = 60, *, rules: Rules = ANY_RULES) -> list[Row]:
    """Rows whose keys meet each other and earlier ones."""
    return [random_row(rng, f"k{rng.randrange(keys)}", rules) for _ in range(rng.randint(1, rows_max))]


def fresh_batch(rng: random.Random, rows_max: int, commit: int, *, rules: Rules = ANY_RULES) -> list[Row]:
    """Rows whose keys nobody had before."""
    return [random_row(rng, f"new-{commit}-{number}", rules) for number in range(rng.randint(1, rows_max))]
