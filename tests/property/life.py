"""One table that lives through everything, beside a dict: writes, all services, recovery, deaths, and its readers."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.errors import CommitConflictError, HistoryLostError, UnsupportedError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from tests.crash.tables import Rows, new_table, run_until, trips

KEYS, CITIES = tuple("abcdefghijkl"), ("sf", "la", "nyc")
COLUMNS = ["id", "ts", "city"]
_SERVICES = (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT, WriteOperation.CLUSTER)


@dataclass
class Life:
    """A table beside its model: the rows after each commit of data that can still be returned to."""

    rng: random.Random
    store: Store
    handles: list[Table]
    rows: Rows = field(default_factory=dict)
    history: dict[str, Rows] = field(default_factory=dict)
    ts: int = 0
    place: str | None = None
    copied: Rows = field(default_factory=dict)
    """The rows of the consumer who reads changes up to `place`."""
    done: list[str] = field(default_factory=list)
    """What happened, for the message of a failure."""
    version: int = 9
    index: str = "record"
    """The table's index; `automatic`: automatic record keys, with the index that such a table gets."""

    extra: dict[str, pa.DataType] = field(default_factory=dict)
    """Columns that were added since, with the types that they have now."""

    @property
    def moves(self) -> bool:
        """Whether a key may move to another partition: keys are unique in the table."""
        return self.index in ("record", "global_simple", "hbase", "global_bloom")

    @property
    def clusters(self) -> bool:
        """Whether the table can be clustered: not if the bucket of a key decides its file group."""
        return self.index != "bucket"

    def data(self, rows: Rows) -> pa.Table:
        """Rows to write, with all columns that the table has by now; every third value of the added ones is null."""
        found = trips(rows)
        for name, kind in self.extra.items():
            values = pa.array([ts if ts % 3 else None for ts, _ in rows.values()], pa.int64())
            found = found.append_column(name, values.cast(kind))
        return found

    def city(self, key: str) -> str:
        """A partition for the key."""
        return self.rng.choice(CITIES) if self.moves else CITIES[KEYS.index(key) % len(CITIES)]

    @property
    def table(self) -> Table:
        """A handle that is old or new: what it has cached must not matter."""
        if self.rng.random() < 0.3:
            self.handles[self.rng.randrange(len(self.handles))] = Table(self.store)
        return self.rng.choice(self.handles)

    def put(self, table: Table, rows: Rows, properties: Mapping[str, str] | None = None) -> object:
        """Insert and update rows; with automatic keys all of them are in the table, or none is."""
        if self.index != "automatic":
            return table.upsert(self.data(rows), properties=properties)
        stored = self.stored(table, rows)
        if not stored.num_rows:
            return table.insert(self.data(rows), properties=properties)
        for place, name in ((0, "ts"), (1, "city")):
            column = stored.schema.get_field_index(name)
            values = [rows[key][place] for key in stored["id"].to_pylist()]
            stored = stored.set_column(
                column, stored.schema.field(column), pa.array(values, stored.schema.types[column])
            )
        return table.upsert(stored, properties=properties)

    def stored(self, table: Table, keys: Collection[str]) -> pa.Table:
        """The stored rows of these ids, with all columns."""
        return table.to_arrow(where=f"id IN ({', '.join(map(repr, sorted(keys)))})")

    def write(self, name: str, call: Callable[[Table], object], rows: Rows) -> None:
        """Write, and die at a call of the storage now and then; then `rows` are the rows of the table, or the old."""
        before = self.writes()
        if self.rng.random() < 0.12:
            self.died(name, call)
            found = read(Table(self.store))
            assert found in (self.rows, rows), f"{name}: neither old nor new: {found}"
            new = [instant for instant in self.writes() if instant not in before]
            if new and found == rows:
                self.history[new[0]] = rows
            self.rows = found
            return
        try:
            call(self.table)
        except CommitConflictError:
            assert self.table.pending_clusterings().instants
            self.done.append(f"{name}: waits for a clustering")
            self.run_clusterings()
            return
        new = [instant for instant in self.writes() if instant not in before]
        self.rows = rows
        if new:
            self.history[new[0]] = rows

    def died(self, name: str, call: Callable[[Table], object]) -> None:
        """Run the call until it dies at one of its first storage calls, or at none."""
        number = self.rng.randint(1, 150)
        self.done.append(f"{name}: dies at call {number}")
        try:
            run_until(self.store, call, number)
        except (CommitConflictError, UnsupportedError) as error:
            self.done.append(f"{name}: refused: {error}")

    def writes(self) -> list[str]:
        """Requested times of the completed commits of data on the active timeline, the oldest first."""
        view = Table(self.store).view()
        done = view.timeline.writes().completed()
        return [found.requested_time for found in done if view.commit_metadata(found).operation_type not in _SERVICES]

    def run_clusterings(self) -> None:
        """Execute the pending plans of clusterings."""
        for instant in self.table.pending_clusterings().instants:
            self.table.cluster(instant=instant)

    def forget(self, instants: Collection[str]) -> None:
        """Forget commits of data that were taken back: the rows are those of the newest commit that stays."""
        for instant in instants:
            del self.history[instant]
        self.rows = next(reversed(self.history.values()), {})


def new_life(
    seed: int, table_type: str, index: str | None = None, more: Mapping[str, str] | None = None, version: int = 9
) -> Life:
    """An empty table whose index (unless given), statistics and retention the seed chooses."""
    rng = random.Random(seed)
    retained = rng.randint(1, 3)
    properties = {
        "hoodie.clean.commits.retained": str(retained),
        "hoodie.clean.automatic": rng.choice(["true", "false"]),
        "hoodie.keep.min.commits": str(retained + 2),
        "hoodie.keep.max.commits": str(retained + 2 + rng.randint(1, 3)),
        "hoodie.metadata.compact.max.delta.commits": str(rng.randint(2, 4)),
        "hoodie.timeline.compaction.batch.size": "3",
        "hoodie.metadata.index.column.stats.enable": rng.choice(["true", "true", "false"]),
        "hoodie.parquet.small.file.limit": rng.choice(["0", "100000"]),
        "hoodie.index.bloom.num_entries": "20",
    }
    if rng.random() < 0.3:
        properties["hoodie.clean.policy"] = "KEEP_LATEST_FILE_VERSIONS"
        properties["hoodie.clean.fileversions.retained"] = str(retained)
    if rng.random() < 0.3:
        properties |= {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"}
    if table_type == "merge_on_read" and rng.random() < 0.5:
        properties |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    if rng.random() < 0.3:
        properties |= {"hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.bloom.index.use.metadata": "true"}
    store = MemoryStore()
    chosen = rng.choice(
        ["record", "record", "global_simple", "partitioned_record", "simple", "bucket", "bloom", "global_bloom"]
    )
    if version < 9 and chosen == "partitioned_record":
        chosen = "record"
    index = chosen if index is None else index
    properties |= more or {}
    if index == "automatic":
        new_table(
            store, table_type=table_type, index=None, record_key=None, ordering=None, properties=properties,
            table_version=version,
        )  # fmt: skip
    else:
        new_table(store, table_type=table_type, index=index, properties=properties, table_version=version)
    life = Life(rng, store, [Table(store) for _ in range(2)], index=index, version=version)
    life.done.append(f"{table_type}, {index}, version {version}, {properties}")
    return life


def read(table: Table, as_of: str | None = None) -> Rows:
    """All rows; no key twice."""
    found = table.to_arrow(COLUMNS, as_of=as_of).to_pylist()
    rows = {row["id"]: (row["ts"], row["city"]) for row in found}
    assert len(rows) == len(found), f"a key has two rows: {found}"
    return rows


def check_now(life: Life) -> None:
    """The rows are the dict's, for every handle, also by a condition that statistics may answer."""
    for table in (*life.handles, Table(life.store)):
        assert read(table) == life.rows
    least = life.rng.randint(0, life.ts + 1)
    city = life.rng.choice(CITIES)
    for where, wanted in (
        (f"ts >= {least}", {key: row for key, row in life.rows.items() if row[0] >= least}),
        (f"city = '{city}' AND ts < {least}", {k: r for k, r in life.rows.items() if r[1] == city and r[0] < least}),
    ):
        found = life.table.to_arrow(COLUMNS, where=where).to_pylist()
        assert {row["id"]: (row["ts"], row["city"]) for row in found} == wanted, where
    keys = life.rng.sample(KEYS, 4)
    stored = life.stored(life.table, keys).select([RECORD_KEY, PARTITION_PATH]) if life.index == "automatic" else keys
    found = life.table.read_keys(stored).select(COLUMNS).to_pylist()
    assert {row["id"]: (row["ts"], row["city"]) for row in found} == {k: r for k, r in life.rows.items() if k in keys}


def check_past(life: Life) -> None:
    """A state of the past is what it was, or it is refused, and the error names an instant that can be read."""
    for instant in life.rng.sample(list(life.history), min(3, len(life.history))):
        try:
            found = read(life.table, instant)
        except HistoryLostError as error:
            oldest = error.oldest_instant
            assert oldest != instant, f"{instant} is refused, and named"
            # What the error names can be read; a service leaves the rows as they are.
            assert read(life.table, oldest) == life.history.get(oldest, read(life.table, oldest))
            continue
        assert found == life.history[instant], f"the state as of {instant} changed"


def check_sound(life: Life) -> None:
    """The full check finds no error, and no row outside of its partition."""
    report = Table(life.store).verify(full=True)
    assert report.problems == {}, str(report)
    assert not any("than their partition" in note for note in report.notes), str(report)


def consume(life: Life) -> None:
    """A consumer of changes holds every row of the table as it is; only deletes are not told to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = life.table.changes_since(life.place, fallback="snapshot")
    changed = {row["id"]: (row["ts"], row["city"]) for row in found.rows.select(COLUMNS).to_pylist()}
    life.copied = changed if found.is_snapshot else {**life.copied, **changed}
    life.place = found.until
    assert {key: life.copied.get(key) for key in life.rows} == life.rows, f"the consumer's rows, since {found.since}"
