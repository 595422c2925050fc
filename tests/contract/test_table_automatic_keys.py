"""A table without record key fields, on each engine: rows are changed by a condition or by their stored keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from tests.contract.table_lanes import ON_WORKERS, Lane, trips

ROWS = trips(("a", 1, 1.0, "sf"), ("b", 2, 2.0, "nyc"), ("c", 3, 3.0, "sf"), ("d", 4, 4.0, "nyc"))


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_rows_are_changed_by_conditions_and_stored_keys(lane: Lane, table_type: str) -> None:
    table = lane.create(record_key=None, partition_by="city", type=table_type, index="global_simple")
    result = table.insert(lane.data(ROWS), properties=ON_WORKERS)
    assert result.inserted == 4
    stored = table.read if lane.session is not None else table.to_arrow

    def found() -> dict[str, tuple[float, str]]:
        rows = lane.arrow(stored(["id", "fare", RECORD_KEY])).to_pylist()
        return {row["id"]: (row["fare"], row[RECORD_KEY]) for row in rows}

    keys = {name: key for name, (_, key) in found().items()}
    assert set(keys.values()) == {f"{result.instant}_0_{row}" for row in range(4)}

    table.update({"fare": "fare + ts"}, where="id IN ('a', 'b')", properties=ON_WORKERS)
    table.delete_where("id = 'c'", properties=ON_WORKERS)
    one = table.to_arrow(where="id = 'd'")
    changed = one.set_column(one.schema.get_field_index("fare"), "fare", pa.array([9.0]))
    assert table.upsert(lane.data(changed), properties=ON_WORKERS).updated == 1
    assert found() == {"a": (2.0, keys["a"]), "b": (4.0, keys["b"]), "d": (9.0, keys["d"])}

    named = one.select([RECORD_KEY, PARTITION_PATH])
    unknown = pa.table({RECORD_KEY: ["20200101000000000_0_0"], PARTITION_PATH: ["city=sf"]}, schema=named.schema)
    asked = lane.data(pa.concat_tables([named, unknown]))
    assert lane.arrow(table.read_keys(asked))["id"].to_pylist() == ["d"]
    assert lane.arrow(table.filter_exists(asked))[RECORD_KEY].to_pylist() == unknown[RECORD_KEY].to_pylist()
    assert table.delete(asked, properties=ON_WORKERS).deleted == 1
    assert set(found()) == {"a", "b"}
    with pytest.raises(hoodie.UnsupportedError, match="call insert"):
        table.upsert(lane.data(ROWS))
    with pytest.raises(hoodie.SchemaMismatchError, match=f"the column {RECORD_KEY} of rows"):
        table.delete(lane.data(ROWS))


@pytest.mark.surface
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("index", ["simple", "global_simple", "record"])
def test_a_merge_joins_by_any_column_and_inserts_new_keys(lane: Lane, table_type: str, index: str) -> None:
    """The quick start of Hudi: update the fares that meet, insert the other rows; here some are deleted too."""
    table = lane.create(record_key=None, partition_by="city", type=table_type, index=index)
    table.insert(lane.data(ROWS))

    def found() -> dict[str, tuple[float, str, str]]:
        rows = table.to_arrow(["id", "fare", "city", RECORD_KEY]).to_pylist()
        assert len({row[RECORD_KEY] for row in rows}) == len(rows)
        return {row["id"]: (row["fare"], row["city"], row[RECORD_KEY]) for row in rows}

    before, commits = found(), len(table.timeline.completed())
    news = trips(
        ("x", 1, 10.0, ""), ("x", 2, -1.0, ""), ("e", 5, 5.0, "sf"), ("f", 6, 6.0, "la"), ("g", None, 7.0, "la")
    )
    merge = table.merge(lane.data(news), on="t.ts = s.ts", properties=ON_WORKERS).when_matched_delete("s.fare < 0")
    result = merge.when_matched_update({"fare": "t.fare + s.fare"}).when_not_matched_insert_all().execute()
    assert (result.inserted, result.updated, result.deleted) == (3, 1, 1)
    assert len(table.timeline.completed()) == commits + 1
    now = found()
    new = {name: now.pop(name) for name in ("e", "f", "g")}
    assert now == {"a": (11.0, *before["a"][1:]), "c": before["c"], "d": before["d"]}
    assert {name: row[:2] for name, row in new.items()} == {"e": (5.0, "sf"), "f": (6.0, "la"), "g": (7.0, "la")}
    assert {row[2].split("_")[0] for row in new.values()} == {result.instant}

    twice = lane.data(trips(("x", 3, 1.0, ""), ("y", 3, 2.0, "")))
    with pytest.raises(hoodie.RecordKeyError, match="at most one source row"):
        table.merge(twice, on="t.ts = s.ts").when_matched_update({"fare": "s.fare"}).execute()
    # Any condition: without an equality, and with one and more.
    fares = {"low": 2.5, "high": 5.5}
    between = lane.data(pa.table({name: [value] for name, value in fares.items()}))
    merge = table.merge(between, on="t.fare BETWEEN low AND high").when_matched_update({"fare": "s.high"})
    assert merge.when_not_matched_by_source_update({"fare": "-1.0"}).execute().updated == 6
    assert {name: row[0] for name, row in found().items()} == {
        **dict.fromkeys("cde", 5.5),
        **dict.fromkeys("afg", -1.0),
    }
    more = lane.data(trips(("e", 9, 0.5, ""), ("f", 9, 0.5, ""), ("h", 8, 8.0, "la")))
    merge = table.merge(more, on="t.id = s.id AND t.fare > s.fare").when_matched_update({"ts": "s.ts"})
    result = merge.when_not_matched_insert_all("s.ts = 8").execute()
    assert (result.inserted, result.updated) == (1, 1)

    # Rows of the table as the source, with their keys.
    stored = table.to_arrow(where="id = 'e'") if lane.session is None else table.read(where="id = 'e'")
    by_key = table.merge(stored, on=f"t.{RECORD_KEY} = s.{RECORD_KEY}").when_matched_delete()
    assert by_key.when_not_matched_by_source_update({"fare": "0.0"}).execute().deleted == 1
    assert {row[0] for row in found().values()} == {0.0}


def test_a_sorted_load_numbers_rows_in_the_order_of_the_data(lane: Lane) -> None:
    table = lane.create(record_key=None, partition_by="city")
    rows = trips(*((str(n), n, 1.0, "sf") for n in range(50)))
    instant = table.bulk_insert(lane.data(rows), sort=["fare"]).instant
    keys = [row[RECORD_KEY] for row in sorted(table.to_arrow().to_pylist(), key=lambda row: int(row["ts"]))]
    assert len(set(keys)) == 50
    tasks = [(int(task), int(row)) for _, task, row in (key.split("_") for key in keys)]
    assert keys == [f"{instant}_{task}_{row}" for task, row in tasks]
    assert tasks == sorted(tasks)
