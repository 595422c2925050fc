"""Merges into tables with automatic keys: stored rows keep their keys, inserted rows get new ones, in one commit."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.call import Call
from hoodie.commit.steps import Step
from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import HoodieError, InvalidConfigError, RecordKeyError, SchemaMismatchError, UnsupportedError
from hoodie.index import table_index
from hoodie.merge_into import changes
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.automatic_keys import KeySource
from hoodie.table import Table
from hoodie.table.merge import TableMerger
from hoodie.write.jobs import preparation_of
from hoodie.write.setup import check_write
from hoodie.write.staging import BUCKET
from tests.support import tables
from tests.support.index_check import check_index
from tests.support.seeds import seeded
from tests.support.steps import once_at
from tests.support.tables import TYPES, table_of
from tests.unit.write.tables import untouched

SCHEMA = pa.schema([("x", pa.int64()), ("v", pa.string()), ("city", pa.string())])
INDEXES = ("simple", "global_simple", "record", "partitioned_record", "bloom", "global_bloom")
Row = tuple[int | None, str, str]
STORED: tuple[Row, ...] = ((1, "a", "sf"), (2, "b", "nyc"), (3, "c", "sf"), (3, "d", "nyc"), (None, "n", "sf"))
ON = "t.x = s.x"


def new_table(*stored: Row, **given: Any) -> Table:
    """A table with these rows inserted."""
    table = tables.new_table(SCHEMA, record_key=None, **{"partition_by": "city", **given})
    table.insert(table_of(SCHEMA, *(stored or STORED)))
    return table


def check(table: Table) -> None:
    """A record index has the keys of the rows."""
    if "record" in table_index(table.view().config).name:
        check_index(table.view())


def rows_of(table: Table) -> dict[str, Row]:
    """The row of each key; no key twice."""
    found = table.to_arrow([RECORD_KEY, *SCHEMA.names]).to_pylist()
    rows = {row[RECORD_KEY]: (row["x"], row["v"], row["city"]) for row in found}
    assert len(rows) == len(found)
    return rows


@seeded(10)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", INDEXES)
def test_turns_of_merges_are_those_of_a_dict(seed: int, index: str, table_type: str) -> None:
    """The model: the rows by key. Each turn updates, deletes, inserts, or changes rows without a source row."""
    choose = random.Random(seed)
    table = new_table(index=index, type=table_type)
    model = rows_of(table)
    for turn in range(3):
        xs = choose.sample(range(10), 4)
        source: list[Row] = [(x, choose.choice("-+"), choose.choice(["sf", "nyc", "la"])) for x in xs]
        source += [(None, "+", "la"), *([source[0]] if xs[0] not in {x for x, _, _ in model.values()} else [])]
        by_source = choose.random() < 0.3
        merge = table.merge(table_of(SCHEMA, *source), ON).when_matched_delete("s.v = '-'")
        merge = merge.when_matched_update({"v": f"'u{turn}'"}).when_not_matched_insert_all("s.x < 8 OR s.x IS NULL")
        if by_source:
            merge = merge.when_not_matched_by_source_update({"v": f"'o{turn}'"})
        commits = len(table.timeline.completed())
        result = merge.execute()
        assert len(table.timeline.completed()) == commits + 1
        given = {x: v for x, v, _ in source if x is not None}
        met = {x for x, _, _ in model.values()}
        changed = {
            key: (x, f"u{turn}" if x in given else f"o{turn}" if by_source else v, city)
            for key, (x, v, city) in model.items()
            if x not in given or given[x] == "+"
        }
        now = rows_of(table)
        assert {key: row for key, row in now.items() if key in model} == changed
        new = {key: row for key, row in now.items() if key not in model}
        added = [row for row in source if row[0] is None or (row[0] not in met and row[0] < 8)]
        assert sorted(new.values(), key=str) == sorted(added, key=str)
        changes_of = [key for key in changed if changed[key] != model[key]]
        assert (result.inserted, result.updated) == (len(added), len(changes_of))
        assert result.deleted == len(model) - len(changed)
        assert {key.split("_")[0] for key in new} <= {result.instant}
        model = now
    check(table)


def test_on_compares_any_columns_and_stored_keys() -> None:
    table = new_table(partition_by=None)
    both = table.merge([{"y": 3, "w": "c"}, {"y": 3, "w": "x"}], "t.x = s.y AND t.v = s.w")
    assert both.when_matched_update({"v": "'both'"}).execute().updated == 1
    null_safe = table.merge([{"y": None}], "t.x <=> s.y").when_matched_update({"v": "'null'"})
    assert null_safe.execute().updated == 1
    named = table.to_arrow([RECORD_KEY, "v"], where="x = 1")
    by_key = table.merge(named, f"t.{RECORD_KEY} = s.{RECORD_KEY}").when_matched_update({"v": "concat(s.v, '!')"})
    assert by_key.execute().updated == 1
    every = table.merge(table_of(SCHEMA, (2, "all", "la")), ON).when_matched_update_all().when_not_matched_insert_all()
    assert every.execute().updated == 1
    expected = {(1, "a!", "sf"), (2, "all", "la"), (3, "both", "sf"), (3, "d", "nyc"), (None, "null", "sf")}
    assert {*rows_of(table).values()} == expected


def met(on: str, **source: Any) -> set[tuple[int | None, int | None]]:
    """The columns `x` and `y` of rows that meet by `on`: of stored rows, with 1 to 4 in `x`, and of the source."""
    table = tables.new_table(pa.schema([("x", pa.int64()), ("y", pa.int64())]), record_key=None)
    table.insert({"x": [1, 2, 3, 4], "y": [None] * 4})
    table.merge(pa.table(source), on).when_matched_update({"y": "s.y"}).execute()
    return {(row["x"], row["y"]) for row in table.to_arrow(["x", "y"], where="y IS NOT NULL").to_pylist()}


def test_on_may_be_any_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_PAIRS_AT_ONCE", 3)
    source = {"x": [1, 2, 3, 9, None], "y": [10, 20, 30, 40, 50]}
    assert met("t.x = s.x AND s.y > 10", **source) == {(2, 20), (3, 30)}
    assert met("t.x + 8 = s.x", **source) == {(1, 40)}
    assert met("t.x = s.x AND (s.y = 10 OR t.x = 3)", **source) == {(1, 10), (3, 30)}
    assert met("t.x > s.x * 3 OR t.x < s.x - 7", **source) == {(1, 40), (4, 10)}
    assert met("t.x BETWEEN low AND high", low=[2], high=[3], y=[7]) == {(2, 7), (3, 7)}
    assert met("t.x = s.x AND current_date() > DATE '2100-01-01'", **source) == set()
    assert met("t.x = s.x AND s.x = NULL", **source) == set()
    assert met("t.x = 2 AND s.x IS NULL", **source) == {(2, 50)}


def test_rows_that_no_condition_lets_meet_are_inserted() -> None:
    table = new_table(partition_by=None)
    news = table_of(SCHEMA, (1, "low", "x"), (4, "high", "x"))
    merge = table.merge(news, "t.x >= s.x AND t.v <> 'c'").when_matched_update({"city": "'met'"}, "t.x = 1")
    merge = merge.when_not_matched_insert_all().when_not_matched_by_source_delete()
    result = merge.execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 2)
    assert {*rows_of(table).values()} == {(1, "a", "met"), (2, "b", "nyc"), (3, "d", "nyc"), (4, "high", "x")}


def test_too_many_pairs_without_an_equality_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "PAIRS_MAX", 9)
    table = new_table()
    with untouched(table, "10 pairs of rows .*at most 9; add an equality", UnsupportedError):
        table.merge(table_of(SCHEMA, (1, "", ""), (2, "", "")), "t.x < s.x").when_matched_delete().execute()


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", ["simple", "record"])
def test_a_retry_after_a_conflict_inserts_keys_of_the_commit(index: str, table_type: str) -> None:
    """Another writer changes a row that the merge updates: the rows are read again, and the merge changes that row."""
    table = new_table(index=index, type=table_type)
    before = rows_of(table)
    others: list[str | None] = []

    def other() -> None:
        others.append(hoodie.open(table.path, spark=False).update({"v": "'other'"}, where="x = 3").instant)

    merge = table.merge(table_of(SCHEMA, (3, "+", "sf"), (7, "new", "sf")), ON)
    with once_at(Step.WRITTEN, other):
        merge = merge.when_matched_update({"v": "concat(t.v, s.v)"}).when_not_matched_insert_all()
        result = merge.execute()
    assert result.notes[0].startswith("retried once")
    assert str(others[0]) < str(result.instant)
    now = rows_of(table)
    assert [key.split("_")[0] for key in now if key not in before] == [result.instant]
    assert [row[1] for row in now.values() if row[0] == 3] == ["other+", "other+"]
    check(table)


def test_an_exchange_puts_a_new_row_where_its_values_say() -> None:
    """A task that Spark repeats may get its rows in another order, and other tasks have read what it wrote first."""
    table = new_table(index="global_simple")
    call = Call(state=table._context.state, engine=LocalEngine())
    prepare = preparation_of(check_write(call, None), key_source=KeySource.STORED_OR_AUTOMATIC, buckets=4)
    rows = table_of(SCHEMA, *((n if n % 3 else None, f"v{n}", "sf") for n in range(40)))
    keys = pa.array([f"key{n}" if n % 2 else None for n in range(40)], pa.string())
    batch = rows.append_column(RECORD_KEY, keys).combine_chunks().to_batches()[0]

    def buckets(given: pa.RecordBatch) -> dict[str, int]:
        (found,) = prepare(iter([given]), TaskContext(0, 0, 0))
        return dict(zip(found["v"].to_pylist(), found[BUCKET].to_pylist(), strict=True))

    placed = buckets(batch)
    assert placed == buckets(batch.take(pa.array(range(39, -1, -1))))
    assert {placed[f"v{n}"] for n in range(0, 40, 2)} == {0, 1, 2, 3}


TWICE = table_of(SCHEMA, (3, "p", "sf"), (3, "q", "sf"))
ONE = TWICE.slice(1)
REFUSED: list[tuple[type[HoodieError], str, Callable[[Table], TableMerger]]] = [
    (
        RecordKeyError,
        "at most one source row.*nothing was",
        lambda t: t.merge(TWICE, ON).when_matched_update({"v": "s.v"}),
    ),
    (InvalidConfigError, r"would set \['city'\]", lambda t: t.merge(ONE, ON).when_matched_update_all()),
    (SchemaMismatchError, "'x' is ambiguous: write t.x or", lambda t: t.merge(TWICE, "x > 3").when_matched_delete()),
    (SchemaMismatchError, "no column 'z' in the table", lambda t: t.merge(TWICE, "t.z = s.x").when_matched_delete()),
    (SchemaMismatchError, f"sets '{RECORD_KEY}'", lambda t: t.merge(ONE, ON).when_matched_update({RECORD_KEY: "'k'"})),
]


def test_what_is_refused_changes_nothing() -> None:
    table = new_table()
    for error, text, merge in REFUSED:
        with untouched(table, text, error):
            merge(table).execute()
    assert table.merge(TWICE, ON).when_matched_delete().execute().deleted == 2
