"""Tables without record key fields: rows get keys, and are changed and deleted by a condition or by these keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.call import Call
from hoodie.commit.steps import Step
from hoodie.engine import ArrowDataset, Dataset, Exchange, LocalEngine, TaskContext
from hoodie.errors import HoodieError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.index import SIMPLE, table_index
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.table import Table
from hoodie.write.bulk_insert import bulk_insert, insert_overwrite
from hoodie.write.indexed import insert
from hoodie.write.result import WriteResult
from tests.support import tables
from tests.support.deaths import check_tidy
from tests.support.index_check import check_index
from tests.support.steps import once_at
from tests.support.tables import TYPES
from tests.unit.write.tables import untouched

SCHEMA = pa.schema([("id", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
CITIES = ("sf", "nyc")
NAMES = [RECORD_KEY, PARTITION_PATH]
INDEXES = ("simple", "global_simple", "record", "partitioned_record", "bloom", "global_bloom")


def events(ids: Sequence[int]) -> pa.Table:
    """Rows with these ids, in two cities."""
    return pa.table([list(ids), [float(n) for n in ids], [CITIES[n % 2] for n in ids]], schema=SCHEMA)


def new_table(*ids: int, **given: Any) -> Table:
    """A table with these ids inserted."""
    table = tables.new_table(SCHEMA, record_key=None, **given)
    if ids:
        table.insert(events(ids))
    return table


def keys_of(table: Table) -> dict[int, str]:
    """The key of each id; no key and no id twice."""
    rows = table.to_arrow([RECORD_KEY, "id"]).to_pylist()
    found = {row["id"]: row[RECORD_KEY] for row in rows}
    assert len(found) == len(rows) == len(set(found.values()))
    return found


def changed(rows: pa.Table, name: str, value: object) -> pa.Table:
    """The rows with one value in a column."""
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), pa.array([value] * rows.num_rows, rows.schema.types[place]))


@pytest.mark.matrix(keep=6)
@pytest.mark.parametrize("partition_by", [(), "city"], ids=["whole", "by city"])
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", INDEXES)
def test_a_row_keeps_its_key_through_all_writes_and_services(
    table_type: str, index: str, partition_by: str | tuple[()]
) -> None:
    table = new_table(type=table_type, index=index, partition_by=partition_by)
    inserted = [table.insert(events(range(6))), table.bulk_insert(events(range(6, 12)), sort=["fare"])]
    inserted.append(table.insert(events(range(12, 18))))
    keys = keys_of(table)
    for number, result in enumerate(inserted):
        mine = [keys[n] for n in range(number * 6, number * 6 + 6)]
        assert {key.partition("_")[0] for key in mine} == {result.instant}
        assert result.notes == ()
        if number != 1:  # A sort distributes the rows to tasks.
            assert mine == [f"{result.instant}_0_{row}" for row in range(6)]

    back = table.to_arrow(where="id IN (1, 2)")
    assert table.update({"fare": "fare + 100"}, where="id % 6 = 0").updated == 3
    assert table.delete_where("id = 5").deleted == 1
    assert table.delete(changed(table.to_arrow(where="id = 7"), "fare", None).select(NAMES)).deleted == 1
    assert table.upsert(changed(back, "fare", -1.0)).updated == 2
    expected = {n: float(n) for n in range(18) if n not in (5, 7)} | {n: n + 100.0 for n in (0, 6, 12)}
    expected |= {1: -1.0, 2: -1.0}

    def check() -> None:
        assert keys_of(table) == {n: keys[n] for n in expected}
        assert dict(zip(*table.to_arrow(["id", "fare"]).to_pydict().values(), strict=True)) == expected
        assert table.verify(full=True).ok
        if index == "record":
            check_index(table.view())

    check()
    saved = table.savepoint().instant
    assert saved is not None
    table.cluster(by="fare")
    if table_type == "merge_on_read":
        table.update({"fare": "-2.0"}, where="id = 3")
        expected[3] = -2.0
        assert table.schedule_compaction(properties={"hoodie.compact.inline.max.delta.commits": "1"})
        table.compact()
    check()
    found = table.read_keys(back.select(NAMES))
    assert sorted(found["id"].to_pylist()) == [1, 2]
    assert table.filter_exists(back).num_rows == 0
    assert table.record_locations(back.select(NAMES))["file_id"].null_count == 0
    table.restore(saved)
    expected[3] = 3.0
    check()


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", ["record", "global_simple", "global_bloom"])
def test_an_upsert_of_stored_rows_moves_them_and_adds_none(table_type: str, index: str) -> None:
    table = new_table(*range(4), type=table_type, index=index, partition_by="city")
    keys = keys_of(table)
    stored = table.to_arrow(where="id < 2")
    unknown = changed(table.to_arrow(where="id = 2"), RECORD_KEY, "20200101000000000_0_0")
    result = table.upsert(pa.concat_tables([changed(stored, "city", "la"), changed(unknown, "city", "la")]))
    assert (result.inserted, result.updated, result.ignored) == (0, 2, 1)
    assert result.notes == ("1 rows have keys that the table does not have, and changed nothing",)
    assert keys_of(table) == keys
    assert sorted(table.to_arrow(["id"], where="city = 'la'")["id"].to_pylist()) == [0, 1]
    assert table.verify(full=True).ok


def test_without_moves_a_row_is_looked_up_in_the_partition_of_its_columns() -> None:
    table = new_table(*range(2), partition_by="city")
    result = table.upsert(changed(table.to_arrow(), "city", "la"))
    assert result.notes == (
        "2 rows have keys that the table does not have in the partition of their columns, and changed nothing",
    )
    assert table.count(where="city = 'la'") == 0


def test_overwrites_make_new_keys() -> None:
    table = new_table(*range(4), partition_by="city")
    old = keys_of(table)
    again = table.insert_overwrite(events([0, 2]))
    now = keys_of(table)
    assert {now[1], now[3]} == {old[1], old[3]}
    assert {now[0], now[2]} == {f"{again.instant}_0_0", f"{again.instant}_0_1"}
    table.delete_partitions(["city=nyc"])
    assert sorted(keys_of(table)) == [0, 2]
    last = table.insert_overwrite_table(table.to_arrow())
    assert set(keys_of(table).values()) == {f"{last.instant}_0_0", f"{last.instant}_0_1"}


def test_many_parts_and_files_have_no_key_twice() -> None:
    """Two threads stage the rows, and several tasks write them to files by ranges of key hashes."""
    sizes = {"hoodie.parquet.max.file.size": "200000", "hoodie.parquet.small.file.limit": "0"}
    table = new_table(properties={**sizes, "hoodie.copyonwrite.record.size.estimate": "20"})
    first = table.insert(events(range(40_000)))
    second = table.bulk_insert(events(range(40_000, 80_000)))
    keys = keys_of(table)
    assert len(keys) == 80_000
    assert {key.partition("_")[0] for key in keys.values()} == {first.instant, second.instant}
    assert table.inspect.files().num_rows > 2


@dataclass(frozen=True)
class TwiceEngine:
    """Runs two attempts of each task to their ends, as Spark may with speculation, and takes the results of one.

    The other attempt gets the rows in reverse order.
    """

    name: str = "twice"
    parallelism: int = 2

    def run(
        self, function: Callable[[Any, TaskContext], Any], tasks: Sequence[Any], sizes: Sequence[int] | None = None
    ) -> list[Any]:
        return LocalEngine(1).run(function, tasks)

    def process(
        self, data: Dataset, prepare: Any, prepared_schema: pa.Schema, consume: Any, exchange: Exchange | None = None
    ) -> list[Any]:
        assert isinstance(data, ArrowDataset)
        assert isinstance(data.source, pa.Table)
        assert exchange is None
        half = data.source.num_rows // 2
        taken: list[Any] = []
        for partition, part in enumerate((data.source.slice(0, half), data.source.slice(half))):
            other = part.take(pa.array(range(part.num_rows))[::-1])
            for attempt in (partition, 1 - partition):  # The first attempt of task 0 is taken, the second of task 1.
                rows = (other if attempt else part).to_batches(max_chunksize=3)
                context = TaskContext(partition, 900, 2 * partition + attempt)
                found = list(consume(prepare(iter(rows), context), context))
                taken += [] if attempt else found
        return taken


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("write", [insert, bulk_insert, insert_overwrite])
def test_of_two_attempts_of_a_task_one_counts(write: Callable[[Call, Dataset], WriteResult], table_type: str) -> None:
    table = new_table(index="record", partition_by="city", type=table_type)
    call = Call(state=table._context.state, engine=TwiceEngine())
    result = write(call, ArrowDataset(events(range(20))))
    expected = {n: f"{result.instant}_{n // 10}_{n % 10}" for n in range(20)}
    assert keys_of(table) == expected
    assert result.inserted == 20
    assert table.verify(full=True).ok
    check_index(table.view())
    check_tidy(table.view().store)


@dataclass(frozen=True)
class ArrivalEngine(LocalEngine):
    """An exchange of this engine gets the rows of the data's parts in the order of arrival, the last part first."""

    last_first: bool = False

    def process(
        self, data: Dataset, prepare: Any, prepared_schema: pa.Schema, consume: Any, exchange: Exchange | None = None
    ) -> list[Any]:
        assert isinstance(data, ArrowDataset)
        assert isinstance(data.source, pa.Table)
        assert exchange is not None
        parts: list[pa.RecordBatch] = []
        for number, part in enumerate((data.source.slice(0, 10), data.source.slice(10))):
            parts += prepare(iter(part.to_batches()), TaskContext(number, 900, number))
        rows = pa.Table.from_batches(parts[::-1] if self.last_first else parts, prepared_schema)
        columns = [(name, "ascending") for name in exchange.sort_by]
        return list(consume(iter(rows.sort_by(columns).to_batches()), TaskContext(0, 901, 9)))


@pytest.mark.parametrize("sort", ["partition", ["fare"]])
def test_a_sort_gives_the_same_keys_in_whatever_order_rows_arrive(sort: Any) -> None:
    found = []
    for last_first in (False, True):
        table = new_table(partition_by="city")
        call = Call(state=table._context.state, engine=ArrivalEngine(last_first=last_first))
        bulk_insert(call, ArrowDataset(changed(events(range(20)), "fare", 1.0)), sort)
        found.append({n: key.partition("_")[2] for n, key in keys_of(table).items()})
    assert found[0] == found[1]
    assert [found[0][n] for n in (1, 3, 19)] == ["0_0", "0_1", "0_9"]


def test_a_retry_after_a_conflict_uses_the_time_of_the_commit() -> None:
    """Both inserts fill the same small file; the later attempt has a later instant, and its keys tell that."""
    table = new_table(*range(2), index="record")
    others: list[str | None] = []
    with once_at(Step.WRITTEN, lambda: others.append(hoodie.open(table.path, spark=False).insert(events([9])).instant)):
        result = table.insert(events([3, 4]))
    assert result.notes[0].startswith("retried once")
    keys = keys_of(table)
    assert [keys[n] for n in (3, 4, 9)] == [f"{result.instant}_0_0", f"{result.instant}_0_1", f"{others[0]}_0_0"]
    check_index(table.view())


ONE = events([1])
REFUSED: dict[str, tuple[type[HoodieError], str, Callable[[Table], object]]] = {
    "upsert": (UnsupportedError, "call insert to add them, update or", lambda t: t.upsert(ONE)),
    "upsert of dicts": (UnsupportedError, "call insert", lambda t: t.upsert(ONE.to_pylist())),
    "upsert of null keys": (
        SchemaMismatchError,
        RECORD_KEY,
        lambda t: t.upsert(changed(t.to_arrow(), RECORD_KEY, None)),
    ),
    "delete of rows": (SchemaMismatchError, f"column {RECORD_KEY} of rows", lambda t: t.delete(ONE)),
    "delete of numbers": (SchemaMismatchError, "found values of type int64", lambda t: t.delete([1])),
    "read of rows": (SchemaMismatchError, f"column {RECORD_KEY} of rows", lambda t: t.read_keys(ONE)),
    "partial upsert": (
        UnsupportedError,
        "automatically",
        lambda t: t.upsert({"id": [1], "city": ["sf"]}, partial=True),
    ),
    "policy": (
        InvalidConfigError,
        "dup.policy=drop contradicts automatic",
        lambda t: t.insert(ONE, properties={"hoodie.datasource.insert.dup.policy": "drop"}),
    ),
    "combine": (
        InvalidConfigError,
        "combine.before.insert=true contradicts automatic",
        lambda t: t.insert(ONE, properties={"hoodie.combine.before.insert": "true"}),
    ),
    "stored combine": (
        InvalidConfigError,
        "combine.before.insert=true contradicts automatic",
        lambda t: t.alter.set_property("hoodie.combine.before.insert", True),
    ),
    "sort by key": (InvalidConfigError, "sort='global'", lambda t: t.bulk_insert(ONE, "global")),
    "another index": (
        InvalidConfigError,
        "exists with index=simple, but the call has record",
        lambda t: hoodie.create(t.path, SCHEMA, index="record", exist_ok=True),
    ),
    "a key of columns": (
        InvalidConfigError,
        r"exists with record_key=\(\)",
        lambda t: hoodie.create(t.path, SCHEMA, record_key="id", exist_ok=True),
    ),
}


def test_what_needs_a_key_in_the_data_is_refused() -> None:
    table = new_table(*range(3), partition_by="city")
    for error, text, call in REFUSED.values():
        with untouched(table, text, error):
            call(table)


def test_the_default_index_costs_appends_nothing() -> None:
    table = new_table(partition_by="city")
    config = table.view().config
    assert table_index(config) is SIMPLE
    assert "hoodie.table.recordkey.fields" not in config.raw
    same = hoodie.create(table.path, SCHEMA, partition_by="city", exist_ok=True, spark=False)
    assert same.insert(ONE).inserted == 1
