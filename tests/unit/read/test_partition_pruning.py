"""A condition on partition columns chooses the partitions whose files are listed."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.read.partition_pruning import PartitionPruning
from hoodie.records.condition import Condition
from tests.support.tables import made_once, new_table

CITIES = ["la", "nyc", "a b", "x/y", "é", "", None, "p=q", "__HIVE_DEFAULT_PARTITION__"]
LIKE_HIVE = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
PLAIN = {**LIKE_HIVE, "hoodie.datasource.write.hive_style_partitioning": "false"}


@made_once
def table_of(rows: pa.Table, by: str | list[str], properties: dict[str, str]) -> hoodie.Table:
    table = new_table(rows.schema, partition_by=by, properties=properties)
    table.bulk_insert(rows)
    return table


def wanted(table: hoodie.Table, where: str) -> set[str] | None:
    """The partitions that the condition names; None if they are chosen among all."""
    view = table.view()
    pruning = PartitionPruning.of(view, Condition.parse(where), with_meta_fields(view.schema().arrow))
    assert pruning is not None
    found = pruning.to_list()
    return None if callable(found) else set(found)


@pytest.mark.parametrize("properties", [LIKE_HIVE, PLAIN], ids=["hive", "plain"])
@pytest.mark.parametrize(
    ("where", "ids", "named"),
    [
        ("city = 'la'", [0], 2),
        ("city IN ('la', 'x/y', 'no such')", [0, 3], 4),
        ("(CITY = 'é' OR 'p=q' <=> city) AND id >= '5'", [7], 3),
        ("city = ''", [5], 1),
        ("city <=> NULL", [6], 1),
        ("city IN ('a b', NULL)", [2], 2),
        ("city = '__HIVE_DEFAULT_PARTITION__'", [8], 1),
        ("city = 'la' AND city = 'nyc'", [], 1),
        ("city > 'm'", [1, 3, 4, 7], None),
        ("city IS NULL", [6], None),
        ("city = 'la' OR id = '1'", [0, 1], None),
    ],
)
def test_text_partitions(properties: dict[str, str], where: str, ids: list[int], named: int | None) -> None:
    rows = pa.table({"id": [str(number) for number in range(len(CITIES))], "city": pa.array(CITIES, pa.string())})
    table = table_of(rows, "city", properties)
    found = wanted(table, where)
    assert (None if found is None else len(found)) == named
    assert sorted(table.to_arrow(where=where)["id"].to_pylist()) == [str(number) for number in ids]
    told, plan = table.explain(where), table.explain()
    assert told.all_file_slices == plan.all_file_slices == told.file_slices + told.skipped.by_partition_path
    assert told.skipped.by_record_index == 0


def test_numbers_name_their_partitions_and_other_types_choose_among_all() -> None:
    rows = pa.table({"id": ["a", "b", "c"], "n": pa.array([1, -2, None], pa.int32()), "f": [1.5, 2.5, 3.5]})
    numbers = table_of(rows, "n", {})
    assert wanted(numbers, "n IN (1, -2, 7)") == {"n=1", "n=-2", "n=7", "n=__HIVE_DEFAULT_PARTITION__"}
    assert numbers.to_arrow(where="n = -2")["id"].to_pylist() == ["b"]
    assert wanted(numbers, "n = 1 OR n > 5") is None
    floats = table_of(rows, "f", {})
    assert wanted(floats, "f = 2.5") is None
    assert floats.to_arrow(where="f = 2.5")["id"].to_pylist() == ["b"]
    two = table_of(rows, ["n", "f"], {})
    assert wanted(two, "n = 1") is None
    assert two.to_arrow(where="n = 1")["id"].to_pylist() == ["a"]
    assert two.explain("n = 1").skipped.by_partition_path == 1  # what n is in the default partition is unknown


def test_a_day_is_the_path_of_many_times() -> None:
    """A late log row must not hide the stored row, though the condition reads the partition column only."""
    day = 86_400_000 * 20_000
    formatted = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    first = pa.table({"id": ["a", "b"], "at": pa.array([day + 1000, day + 2000], pa.int64()), "v": [5, 5]})
    table = new_table(
        first.schema,
        type="merge_on_read",
        partition_by="at",
        key_generator="timestamp",
        ordering="v",
        index="simple",
        properties=formatted,
    )
    table.upsert(first)
    # The row of `a` is late; the row of `b` makes the write log both.
    table.upsert(pa.table({"id": ["a", "b"], "at": pa.array([day + 9000, day + 2000], pa.int64()), "v": [3, 6]}))
    assert table.to_arrow(["id", "at", "v"]).sort_by("id").to_pylist() == [
        {"id": "a", "at": day + 1000, "v": 5},
        {"id": "b", "at": day + 2000, "v": 6},
    ]
    assert table.count(f"at >= {day + 5000}") == 0
    assert table.count(f"at < {day + 5000}") == 2


def test_folders_of_a_bootstrap_may_have_several_texts_for_a_number() -> None:
    rows = pa.table({"id": ["1", "2"], "month": pa.array([7, 11], pa.int32())})
    table = table_of(rows, "month", LIKE_HIVE)
    view, schema = table.view(), with_meta_fields(rows.schema)
    pruning = PartitionPruning.of(view, Condition.parse("month = 7"), schema)
    assert pruning is not None
    assert not callable(pruning.to_list())
    chosen = replace(pruning, is_bootstrapped=True).to_list()
    assert callable(chosen)
    assert chosen(["month=07", "month=7", "month=11"]) == {"month=07", "month=7"}
