"""A table beside its model: writes that may die, handles that are old or new, and everything that readers can ask."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import hoodie
from hoodie.errors import CommitConflictError, HistoryLostError, UnsupportedError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.view.history import oldest_readable_instant, stable_since
from tests.property.model import CITIES, SCHEMA, Identity, Model, Row, Rules, random_batch, random_row, to_arrow
from tests.support.deaths import check_tidy, run_until
from tests.support.index_check import check_index

_SERVICES = (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT, WriteOperation.CLUSTER)
_CALLS_MAX = 100
"""A write or service that dies does so at one of its first calls, or at none."""
SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "20", "hoodie.index.bloom.fpp": "0.1"}
"""Filters that let many absent keys pass."""
_MOVES = {
    "global_simple": "hoodie.simple.index.update.partition.path",
    "global_bloom": "hoodie.bloom.index.update.partition.path",
    "record": "hoodie.record.index.update.partition.path",
}


@dataclass
class Run:
    """A table and its model, side by side."""

    rng: random.Random
    rules: Rules
    store: Store
    model: Model
    handles: list[Table]
    keeps_all: bool
    """Whether nothing is cleaned, so that every state stays readable, and no savepoint or restore is refused."""
    instants: list[str] = field(default_factory=list)
    """Of the commits of data, as the model has them in its history."""
    place: str | None = None
    copied: dict[Identity, tuple[Any, ...]] = field(default_factory=dict)
    """The rows of the consumer who reads changes up to `place`."""
    extra: dict[str, pa.DataType] = field(default_factory=dict)
    """Columns that were added since, with the types that they have now."""
    clock: int = 0
    has_died: bool = False
    """Whether a writer or service died, and no writer came since."""
    done: list[str] = field(default_factory=list)
    """What happened, for the message of a failure."""

    @property
    def table(self) -> Table:
        """A handle that is old or new: what it has cached must not matter."""
        if self.rng.random() < 0.3:
            self.handles[self.rng.randrange(len(self.handles))] = Table(self.store)
        return self.rng.choice(self.handles)

    @property
    def rows(self) -> list[Row]:
        """The rows of the model, in an order of their own."""
        return sorted(self.model.rows.values(), key=lambda row: (row.id, row.path))

    def batch(self, rows_max: int) -> list[Row]:
        """Rows to upsert. With automatic keys they are stored ones, or there are none."""
        if self.rules.index != "automatic":
            return self.unlike(self.in_time(random_batch(self.rng, rows_max, rules=self.rules)))
        known = {row.id: row.city for row in self.rows}
        ids = self.rng.sample(sorted(known), min(len(known), self.rng.randint(0, rows_max)))
        return [replace(random_row(self.rng, key, self.rules), city=known[key]) for key in ids]

    def unlike(self, rows: list[Row]) -> list[Row]:
        """The rows, changed where they equal their stored row: such a row may keep its commit time (decision 0019)."""
        known = self.model.rows
        equal = [row for row in rows if (old := known.get(self.rules.identity(row))) and old.values() == row.values()]
        return [replace(row, note=f"{row.note}!") if row in equal else row for row in rows]

    def in_time(self, rows: list[Row]) -> list[Row]:
        """The rows with ordering values that no stored row has, if rows may not come late.

        In a log of version 6 late deletes win: test_late_rows_of_version_6.py has a model of them.
        """
        self.clock += 1
        is_logged = self.rules.is_merge_on_read and self.rules.event_time
        in_order = is_logged and self.table.view().config.version.value == 6
        return [replace(row, ts=10**6 + self.clock) for row in rows] if in_order or not self.rules.late else rows

    def data(self, rows: Iterable[Row]) -> pa.Table:
        """Rows to write, with the columns that the table has by now; every third value of the added ones is null."""
        found = to_arrow(rows).select(self.rules.schema.names)
        for name, kind in self.extra.items():
            values = pa.array([None if ts is None or ts % 3 == 0 else ts for ts in found["ts"].to_pylist()], pa.int64())
            found = found.append_column(name, values.cast(kind))
        return found

    def stored(self, rows: Collection[Row]) -> pa.Table:
        """The stored rows with these ids, with all columns."""
        return self.table.to_arrow(where=f"id IN ({', '.join(repr(row.id) for row in rows)})")

    def keys(self, rows: Collection[Row]) -> pa.Table:
        """What tells a look-up or a delete which rows are meant."""
        if self.rules.index == "automatic":
            return self.stored(rows or [Row("nobody", None, None, None, None)]).select([RECORD_KEY, PARTITION_PATH])
        return to_arrow(rows).select(["id", "city"])

    def write(self, name: str, change: Callable[[Model], None], *args: Any, dies: bool = True, **options: Any) -> None:
        """Write to both, and die now and then; then the rows are those of before or after."""
        old = dict(self.model.rows)
        change(self.model)
        options["properties"] = {**self._sizes(), **options.get("properties", {})}
        if dies and self.rng.random() < 0.12:
            self.model.rows, new = old, self.model.rows
            before = self.writes()
            self.die(name, lambda table: getattr(table, name)(*args, **options))
            if committed := [instant for instant in self.writes() if instant not in before]:
                self.model.rows = new
                self._completed(committed[0])
            return
        try:
            result = getattr(self.table, name)(*args, **options)
        except CommitConflictError:
            assert self.table.pending_clusterings().instants
            self.done.append(f"{name}: waits for a clustering")
            self.model.rows = old
            self.run_clusterings()
            return
        self.has_died = False
        check_counts(self.model, name, result)
        if result.instant:
            self._completed(result.instant)

    def _completed(self, instant: str) -> None:
        self.instants.append(instant)
        self.model.done()

    def _sizes(self) -> dict[str, str]:
        """A few rows fill a file; a record is taken for smaller or larger than it is."""
        full = self.rng.choice([4_000, 8_000, 20_000])
        return {
            "hoodie.parquet.max.file.size": str(full),
            "hoodie.parquet.small.file.limit": str(self.rng.choice([0, full // 2, full])),
            "hoodie.copyonwrite.record.size.estimate": str(self.rng.choice([0, 100, 700])),
        }

    def die(self, name: str, call: Callable[[Table], object]) -> None:
        """Run the call until it dies at one of its first storage calls, or at none."""
        number = self.rng.randint(1, _CALLS_MAX)
        self.has_died = True
        self.done.append(f"{name}: dies at call {number}")
        try:
            run_until(self.store, call, number)
        except (CommitConflictError, UnsupportedError) as error:
            self.done.append(f"{name}: refused: {error}")

    def completed(self) -> list[str]:
        """Requested times of the completed commits and services on the active timeline, the oldest first."""
        return [found.requested_time for found in Table(self.store).timeline.writes().completed()]

    def writes(self) -> list[str]:
        """The same of the commits of data."""
        view = Table(self.store).view()
        done = view.timeline.writes().completed()
        return [found.requested_time for found in done if view.commit_metadata(found).operation_type not in _SERVICES]

    def run_clusterings(self) -> None:
        """Execute the pending plans of clusterings."""
        for instant in self.table.pending_clusterings().instants:
            self.table.cluster(instant=instant)

    def forget(self, before: Collection[str]) -> None:
        """Forget the commits that were there before and are gone: the newest ones."""
        gone = set(before) - set(self.completed())
        taken = [instant for instant in self.instants if instant in gone]
        left = self.instants[: len(self.instants) - len(taken)]
        assert [*left, *taken] == self.instants, "commits were taken back that were not the newest"
        self.instants = left
        self.model.take_back(len(taken))

    def refused(self, name: str, error: Exception) -> None:
        """Note a refusal, which depends on what was cleaned or archived."""
        assert not self.keeps_all, f"{name}: {error}"
        self.done.append(f"{name} refused: {error}")


_UNDOING = {
    "hoodie.metadata.compact.max.delta.commits": "3",
    # A clean would end the history of a long run.
    "hoodie.clean.automatic": "false",
    "hoodie.clean.commits.retained": "100",
    "hoodie.keep.min.commits": "101",
    "hoodie.keep.max.commits": "102",
}


def new_run(rules: Rules, seed: int, mix: str = "writes", more: Mapping[str, str] | None = None) -> Run:
    """An empty table; in a life the seed chooses retention, statistics and inline services too."""
    rng = random.Random(seed)
    properties = {
        # Where ordering values decide, late rows fill what parts of rows do not bring.
        "hoodie.python.partial.updates": "compatible" if rules.event_time else "always",
        "hoodie.metadata.record.index.min.filegroup.count": "3",
        **SMALL_FILTERS,
        **({_MOVES[rules.index]: str(rules.moves).lower()} if rules.index in _MOVES else {}),
        **(_served(rng, rules) if mix == "services" else {}),
        **(_UNDOING if mix == "undoing" else {}),
        **(more or {}),
    }
    store, is_automatic = MemoryStore(), rules.index == "automatic"
    hoodie.create(
        store.uri(""), rules.schema, record_key=None if is_automatic else "id", partition_by="city",
        ordering="ts" if rules.event_time else None,
        type="merge_on_read" if rules.is_merge_on_read else "copy_on_write",
        index=None if is_automatic else rules.index, table_version=rules.version or 9, properties=properties,
        spark=False,
    )  # fmt: skip
    run = Run(rng, rules, store, Model(rules), [Table(store) for _ in range(2)], keeps_all=mix == "undoing")
    run.done.append(f"seed {seed}, {mix}, {rules}, {properties}")
    return run


def _served(rng: random.Random, rules: Rules) -> dict[str, str]:
    retained = rng.randint(1, 3)
    properties = {
        "hoodie.clean.commits.retained": str(retained),
        "hoodie.clean.automatic": rng.choice(["true", "false"]),
        "hoodie.keep.min.commits": str(retained + 2),
        "hoodie.keep.max.commits": str(retained + 2 + rng.randint(1, 3)),
        "hoodie.metadata.compact.max.delta.commits": str(rng.randint(2, 4)),
        "hoodie.timeline.compaction.batch.size": "3",
        "hoodie.metadata.index.column.stats.enable": rng.choice(["true", "true", "false"]),
    }
    if rng.random() < 0.3:
        properties["hoodie.clean.policy"] = "KEEP_LATEST_FILE_VERSIONS"
        properties["hoodie.clean.fileversions.retained"] = str(retained)
    if rng.random() < 0.3:
        properties |= {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"}
    if rules.is_merge_on_read and rng.random() < 0.5:
        properties |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    if rng.random() < 0.3:
        properties |= {"hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.bloom.index.use.metadata": "true"}
    return properties


def check_counts(model: Model, name: str, result: hoodie.WriteResult) -> None:
    """The counts of a result are those of the model, unless the result says that it could not count."""
    rules, wanted = model.rules, model.counts
    if rules.index == "bucket" and rules.is_merge_on_read:  # it does not look which keys the bucket's files have
        parts = (result.inserted, result.updated, result.deleted, result.ignored, result.duplicates)
        assert None in parts or sum(map(int, filter(None, parts))) == sum(vars(wanted).values()), f"{name}: {parts}"
        return
    # A logged row of a known key may lose when it is read; a key with a logged delete is known to `simple`.
    is_late = rules.index in ("simple", "bloom")
    # Of repeated keys that the table does not have, the indexes drop the copies at different steps.
    left_out, expected_out = (result.ignored or 0) + result.duplicates, wanted.ignored + wanted.duplicates
    is_exact = not (rules.is_merge_on_read and is_late)
    assert result.ignored is None or left_out == expected_out or (not is_exact and left_out < expected_out), name
    if result.deleted is None:
        assert rules.is_merge_on_read, name
        assert not rules.index.endswith("record"), name
    elif rules.is_merge_on_read and (is_late or result.ignored is None):
        assert result.inserted + result.updated + result.deleted >= wanted.inserted + wanted.updated + wanted.deleted
        assert is_late or result.inserted == wanted.inserted, name
    else:
        found = result.inserted, result.updated, result.deleted
        assert found == (wanted.inserted, wanted.updated, wanted.deleted), name
    if name != "delete":
        assert result.duplicates == wanted.duplicates, name


def counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows, as values that can be compared."""
    return Counter(tuple(row.get(name) for name in SCHEMA.names) for row in rows.to_pylist())


def expected(rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    """The rows of the model, likewise."""
    return Counter(row.values() for row in rows)


def check_now(run: Run) -> None:
    """The rows are the dict's; each lies in its partition and has the commit time of the commit that wrote it."""
    rows = run.table.to_arrow()
    assert counted(rows) == expected(run.rows)
    found = {(row["id"], row[PARTITION_PATH], row["_hoodie_commit_time"]) for row in rows.to_pylist()}
    assert found == {(row.id, row.path, run.instants[row.commit]) for row in run.rows}
    if run.rules.index != "automatic":
        assert rows[RECORD_KEY].to_pylist() == rows["id"].to_pylist()


def check_all(run: Run) -> None:
    """Every handle, conditions that statistics may answer, look-ups, the past, and the full check."""
    for table in (*run.handles, Table(run.store)):
        assert counted(table.to_arrow()) == expected(run.rows)
    least, city = run.rng.choice([0, 1, 2, 3, 10**6 + run.clock, 10**6 + run.clock + 1]), run.rng.choice(CITIES[:3])
    for where, wanted in (
        (f"ts >= {least}", [row for row in run.rows if row.ts is not None and row.ts >= least]),
        (
            f"city = '{city}' AND ts < {least}",
            [row for row in run.rows if row.city == city and row.ts is not None and row.ts < least],
        ),
        (f"city = '{city}'", [row for row in run.rows if row.city == city]),
    ):
        assert counted(run.table.to_arrow(where=where)) == expected(wanted), where
    some = run.rng.sample(run.rows, min(len(run.rows), 5))
    assert counted(run.table.read_keys(run.keys(some))) == expected(some)
    check_past(run)
    report = Table(run.store).verify(full=True)
    assert report.problems == {}, str(report)
    assert not (run.rules.moves and any("than their partition" in note for note in report.notes)), str(report)
    view = Table(run.store).view()
    # A partitioned index that a restore lost is not built again; the notes say so.
    has_index = run.rules.index == "record" or RECORD_INDEX in view.config.metadata_partitions
    if run.instants and run.rules.index.endswith("record") and has_index and not run.has_died:
        check_index(view)


def check_past(run: Run) -> None:
    """A state of the past is what it was, or it is refused, and the error names the oldest that can be read."""
    view = Table(run.store).view()
    oldest = oldest_readable_instant(view)
    # A clustering that completed after later writes: the states between need files from before it.
    readable = {oldest, stable_since(view, oldest)}
    places = range(len(run.instants))
    for place in run.rng.sample(places, min(3, len(places))):
        instant, rows = run.instants[place], run.model.history[place].values()
        key = run.rng.choice(sorted({row.id for row in rows if row.id}) or ["nobody"])
        try:
            found = counted(run.table.to_arrow(as_of=instant))
            by_key = counted(run.table.to_arrow(as_of=instant, where=f"id = '{key}'"))
        except HistoryLostError as error:
            run.refused(f"read as of {instant}", error)
            named = error.oldest_instant
            # Of a savepoint older than what was cleaned the state can be read.
            assert named != instant
            assert run.table.savepoints() or named in readable
            assert run.table.to_arrow(as_of=named).num_rows >= 0
            continue
        assert found == expected(rows), f"the state as of {instant} changed"
        assert by_key == expected(row for row in rows if row.id == key), f"{key} as of {instant} changed"
    for _ in range(2):
        if len(places) > 1:
            until = run.rng.choice(places[1:])
            since = run.rng.randrange(until)
            try:
                found = counted(run.table.changes(run.instants[since], run.instants[until]))
            except HistoryLostError:
                assert not run.keeps_all
                continue
            assert set(found) == run.model.changes(since, until), (since, until)


def consume(run: Run) -> None:
    """A consumer of changes holds every row of the table as it is; only deletes are not told to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run.table.changes_since(run.place, fallback="snapshot")
    rows = [Row(*(row.get(name) for name in SCHEMA.names)) for row in found.rows.to_pylist()]
    changed = {run.rules.identity(row): row.values() for row in rows}
    run.copied = changed if found.is_snapshot else {**run.copied, **changed}
    run.place = found.until
    wanted = {key: row.values() for key, row in run.model.rows.items()}
    assert {key: run.copied.get(key) for key in wanted} == wanted, f"the consumer's rows, since {found.since}"


def check_end(run: Run) -> None:
    """After the last deaths are taken up, nothing is left of them, and the full check finds nothing."""
    run.run_clusterings()
    last = run.in_time([Row("last", 10**7, "sf", None, None)])
    name = "insert" if run.rules.index == "automatic" else "upsert"
    data, off = run.data(last), {"hoodie.compact.inline": "false"}
    run.write(name, lambda model: getattr(model, name)(last), data, dies=False, properties=off)
    if run.rules.is_merge_on_read:
        run.table.schedule_compaction(strategy="unbounded")
    while run.table.pending_compactions().instants:
        run.table.compact()
    run.table.clean()
    check_now(run)
    consume(run)
    check_all(run)
    if Table(run.store).verify(full=True).warnings:
        # Such as statistics whose build died with a restore: a warning names the repair.
        run.table.repair(dry_run=False, min_age_seconds=0.0)
    # A partitioned index that a restore lost is not built again; the notes say so.
    partitions = Table(run.store).view().config.metadata_partitions
    assert run.rules.index != "record" or RECORD_INDEX in partitions
    check_tidy(run.store, has_record_index=RECORD_INDEX in partitions)
