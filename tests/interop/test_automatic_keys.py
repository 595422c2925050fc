"""Tables without record key fields: the JVM and this library add, change and delete rows in turn."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from tests.interop.judges import HIVE, Jvm, read_with_hudi_rs
from tests.interop.shared_trips import TYPES
from tests.support.rows import assert_same_rows
from tests.support.seeds import seeded

SCHEMA = pa.schema([("id", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
KEYED = [RECORD_KEY, *SCHEMA.names]
KEY = re.compile(r"(\d{17})_(\d+)_(\d+)")


def events(ids: range) -> pa.Table:
    """Rows with these ids."""
    return pa.table([list(ids), [float(n) for n in ids], [("sf", "nyc")[n % 2] for n in ids]], schema=SCHEMA)


class Shared:
    """The table, its rows by id, and the key of each id since it was first read."""

    def __init__(self, jvm: Jvm, path: Path, table_type: str) -> None:
        self.jvm, self.path, self.table_type = jvm, path, table_type
        self.partition_by = "city" if table_type == "copy_on_write" else ""
        self.rows: dict[int, float] = {}
        self.keys: dict[int, str] = {}

    @property
    def ours(self) -> hoodie.Table:
        """A new handle."""
        return hoodie.open(self.path, spark=False)

    def theirs(self, rows: pa.Table, operation: str) -> None:
        """The JVM adds rows."""
        self.jvm.write(
            rows, self.path, table_name="events", key=None, partition=self.partition_by, operation=operation,
            table_type=self.table_type.upper(), options=HIVE,
        )  # fmt: skip

    def add(self, ids: range, write: Callable[[pa.Table], object]) -> None:
        """Add rows and check the table."""
        write(events(ids))
        self.rows |= {n: float(n) for n in ids}
        self.check()

    def change(self, rows: dict[int, float | None], write: Callable[[], object]) -> None:
        """Change the fares of rows, or delete them (None), and check the table."""
        write()
        self.rows = {n: fare for n, fare in {**self.rows, **rows}.items() if fare is not None}
        self.check()

    def check(self) -> None:
        """All readers see these rows; each has the key that it had before, in the form of the JVM's keys."""
        found = self.ours.to_arrow(KEYED)
        assert_same_rows(self.jvm.read(self.path, KEYED), found)
        assert_same_rows(read_with_hudi_rs(self.path).select(KEYED), found)
        assert dict(zip(found["id"].to_pylist(), found["fare"].to_pylist(), strict=True)) == self.rows
        keys = dict(zip(found["id"].to_pylist(), found[RECORD_KEY].to_pylist(), strict=True))
        assert len(set(keys.values())) == found.num_rows == len(self.rows)
        assert all(map(KEY.fullmatch, keys.values()))
        assert {n: key for n, key in keys.items() if n in self.keys} == {
            n: self.keys[n] for n in keys if n in self.keys
        }
        self.keys = keys

    def stored(self, ids: list[int]) -> pa.Table:
        """Stored rows with all their columns."""
        return self.ours.to_arrow().filter(pc.is_in(pc.field("id"), pa.array(ids)))

    def steps(self, rng: random.Random) -> list[Callable[[], object]]:
        """Each way of both writers to add, change or delete rows, with rows that are drawn when it is called."""
        name = f"events_{self.path.parent.name}"
        self.jvm.sql(f"CREATE TABLE {name} USING hudi LOCATION '{self.path}'")

        def new() -> range:
            first = max([*self.keys, 0]) + 1
            return range(first, first + 4)

        def some() -> list[int]:
            return sorted(rng.sample(sorted(self.rows), 3))

        def listed(ids: list[int]) -> str:
            return f"id IN ({', '.join(map(str, ids))})"

        def set_to(write: Callable[[list[int], float], object]) -> None:
            ids, fare = some(), float(rng.randrange(-99, 0))
            self.change(dict.fromkeys(ids, fare), lambda: write(ids, fare))

        def delete(write: Callable[[list[int]], object]) -> None:
            ids = some()
            self.change(dict.fromkeys(ids), lambda: write(ids))

        def upsert(ids: list[int], fare: float) -> object:
            rows = self.stored(ids)
            return self.ours.upsert(rows.set_column(rows.schema.get_field_index("fare"), "fare", pa.array([fare] * 3)))

        def merge(write: Callable[[pa.Table], object]) -> None:
            rows = pa.concat_tables([self.stored(some()).select(SCHEMA.names), events(new())])
            fares = {n: n + 0.5 for n in rows["id"].to_pylist()}
            source = rows.set_column(1, SCHEMA.field(1), pa.array(list(fares.values())))
            self.change({**fares}, lambda: write(source))

        def merge_of_jvm(source: pa.Table) -> None:
            self.jvm.frame(source).createOrReplaceTempView(f"news_of_{name}")
            self.jvm.sql(f"MERGE INTO {name} t USING news_of_{name} s ON {on} {clauses}")

        on, clauses = "t.id = s.id AND t.city = s.city", "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        return [
            lambda: merge(merge_of_jvm),
            lambda: merge(
                lambda rows: hoodie.sql(
                    None, f"MERGE INTO ours t USING news s ON {on} {clauses}", tables={"ours": self.ours, "news": rows}
                )
            ),
            lambda: self.add(new(), self.ours.insert),
            lambda: self.add(new(), self.ours.bulk_insert),
            lambda: self.add(new(), lambda rows: self.theirs(rows, rng.choice(["insert", "upsert"]))),
            lambda: self.add(new(), lambda rows: self.theirs(rows, "bulk_insert")),
            lambda: set_to(lambda ids, fare: self.jvm.sql(f"UPDATE {name} SET fare = {fare} WHERE {listed(ids)}")),
            lambda: set_to(lambda ids, fare: self.ours.update({"fare": str(fare)}, where=listed(ids))),
            lambda: set_to(upsert),
            lambda: delete(lambda ids: self.jvm.sql(f"DELETE FROM {name} WHERE {listed(ids)}")),
            lambda: delete(lambda ids: self.ours.delete_where(listed(ids))),
            lambda: delete(lambda ids: self.ours.delete(self.stored(ids).select([RECORD_KEY, PARTITION_PATH]))),
        ]


@seeded(4702)
@pytest.mark.parametrize("table_type", TYPES)
def test_both_write_in_turn(jvm: Jvm, tmp_path: Path, table_type: str, seed: int) -> None:
    """Our table or the JVM's, with partitions or without; each step once, in random order."""
    rng = random.Random(f"{seed} {table_type}")
    path = tmp_path / "events"
    shared = Shared(jvm, path, table_type)
    if rng.random() < 0.5:
        partition_by = shared.partition_by or ()
        hoodie.create(path, SCHEMA, partition_by=partition_by, type=table_type, name="events", spark=False)
        shared.add(range(12), shared.ours.insert)
    else:
        shared.add(range(12), lambda rows: shared.theirs(rows, "upsert"))
    config = shared.ours.view().config
    expected = KeyGeneratorType.SIMPLE if shared.partition_by else KeyGeneratorType.NON_PARTITION
    assert config.key_generator is expected
    assert "hoodie.table.recordkey.fields" not in config.raw
    steps = shared.steps(rng)
    for number in rng.sample(range(len(steps)), len(steps)):
        try:
            steps[number]()
        except BaseException as error:
            error.add_note(f"seed {seed}, step {number}")
            raise
    if table_type == "merge_on_read":
        shared.change({}, lambda: jvm.compact(path))
    assert shared.ours.verify(full=True).ok


def test_a_table_of_spark_sql_without_a_primary_key_is_continued(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "events"
    jvm.sql(
        "CREATE TABLE sql_events (id BIGINT, fare DOUBLE, city STRING) USING hudi PARTITIONED BY (city) "
        f"LOCATION '{path}'"
    )
    jvm.sql("INSERT INTO sql_events VALUES (0, 0.0, 'sf'), (1, 1.0, 'nyc')")
    shared = Shared(jvm, path, "copy_on_write")
    shared.rows = {0: 0.0, 1: 1.0}
    shared.check()
    shared.add(range(2, 6), shared.ours.insert)
    shared.change({0: 7.0, 3: 7.0}, lambda: shared.ours.update({"fare": "7"}, where="id IN (0, 3)"))
    shared.change({1: None, 2: None}, lambda: jvm.sql("DELETE FROM sql_events WHERE id IN (1, 2)"))
