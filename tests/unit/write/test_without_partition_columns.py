"""Tables whose data files lack the partition columns: the partition path has their values."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import PartitionPathError, UnsupportedError
from hoodie.table import Table
from tests.support import tables
from tests.support.tables import values_of
from tests.unit.write.tables import files_of, untouched

DROPS = "hoodie.datasource.write.drop.partition.columns"
SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("day", pa.date32()), ("fare", pa.float64())]
)
DAY = datetime.date(2026, 1, 2)


def row(key: str, n: Any, fare: float, ts: int = 1) -> pa.Table:
    schema = SCHEMA if not isinstance(n, str) else SCHEMA.set(2, pa.field("n", pa.string()))
    return tables.table_of(schema, (key, ts, n, DAY, fare))


def table_of(*data: pa.Table, properties: Mapping[str, str] | None = None, **wanted: Any) -> Table:
    named = {"partition_by": "n", "ordering": "ts", "properties": {DROPS: "true", **(properties or {})}}
    return tables.new_table(SCHEMA, *data, **{**named, **wanted})


def rows_of(table: Table) -> dict[str, tuple[str | None, float]]:
    found = {key: (n, fare) for key, n, fare in values_of(table, "id", "n", "fare")}
    assert len(found) == table.count()
    return found


INDEXES = ("record", "partitioned_record", "simple", "global_simple", "bloom", "bucket")


@pytest.mark.parametrize(("index", "hive_style"), [*zip(INDEXES, ["true", "false"] * 3, strict=True)])
def test_all_operations(index: str, hive_style: str) -> None:
    """Indexes look keys up by what reads return: how a path is read back does not depend on them."""
    properties = {"hoodie.datasource.write.hive_style_partitioning": hive_style}
    statistics = {"hoodie.metadata.index.column.stats.enable": "true"} if hive_style == "true" else {}
    table = table_of(index=index, properties={**properties, **statistics})
    table.bulk_insert(pa.concat_tables([row("a", 1, 1.0), row("b", 2, 2.0), row("z", None, 0.0)]))
    table.insert(row("c", 1, 3.0))
    done = table.upsert(pa.concat_tables([row("a", 1, 10.0, 2), row("d", 2, 4.0)]))
    assert (done.inserted, done.updated) == (1, 1)
    first = {"a": ("1", 10.0), "b": ("2", 2.0), "c": ("1", 3.0), "d": ("2", 4.0), "z": (None, 0.0)}
    assert rows_of(table) == first
    assert table.to_arrow(columns=["id"], where="n = '1' and fare > 5")["id"].to_pylist() == ["a"]
    assert table.to_arrow(columns=["id"], where="n is null")["id"].to_pylist() == ["z"]
    assert table.upsert(row("a", 1, 0.0, 0)).ignored == 1
    assert table.delete(row("c", 1, 0.0).select(["id", "n"])).deleted == 1
    assert table.delete_where("n = '2' and fare < 3").deleted == 1
    assert table.update({"fare": "fare + 100"}, where="n = '1'").updated == 1
    assert table.upsert(table.to_arrow(where="id = 'd'")).updated == 1
    assert rows_of(table) == {"a": ("1", 110.0), "d": ("2", 4.0), "z": (None, 0.0)}
    table.insert_overwrite(row("e", 2, 5.0))
    (path,) = {text for text in table.inspect.partitions()["partition_path"].to_pylist() if text.endswith("1")}
    table.delete_partitions([path])
    assert rows_of(table) == {"e": ("2", 5.0), "z": (None, 0.0)}
    table.insert_overwrite_table(pa.concat_tables([row("f", 7, 7.0), row("g", 8, 8.0)]))
    assert rows_of(table) == {"f": ("7", 7.0), "g": ("8", 8.0)}
    assert table.verify(full=True).ok
    written = [data for path, data in files_of(table).items() if not path.startswith(".") and path.endswith(".parquet")]
    for data in written:
        assert pq.read_schema(pa.BufferReader(data)).names[5:] == ["id", "ts", "day", "fare"]


def test_schemas_of_commits_lack_the_columns() -> None:
    table = table_of(row("a", 1, 1.0), partition_by=["n", "day"], record_key=["id", "ts"])
    assert table.schema.names == ["id", "ts", "fare", "n", "day"]
    table.upsert(row("b", 1, 1.0).append_column("tip", pa.array([0.5])), schema="add_columns")
    assert table.schema.names == ["id", "ts", "fare", "tip", "n", "day"]
    found = table.to_arrow(columns=["n", "day"]).to_pylist()
    assert found == [{"n": "1", "day": "2026-01-02"}] * 2
    view = table.view()
    schema = view.commit_metadata(view.completed_writes()[-1]).schema
    assert [field["name"] for field in json.loads(schema or "")["fields"]] == ["id", "ts", "fare", "tip"]


def test_a_record_moves_and_clusterings_keep_the_values() -> None:
    table = table_of(pa.concat_tables([row("a", 1, 1.0), row("b", 1, 2.0)]))
    assert table.upsert(row("a", 5, 3.0, 2)).updated == 1
    table.cluster(by="fare")
    assert rows_of(table) == {"a": ("5", 3.0), "b": ("1", 2.0)}
    assert table.verify(full=True).ok


def test_files_without_meta_fields_too() -> None:
    table = table_of(index="simple", properties={"hoodie.populate.meta.fields": "false"})
    table.insert(pa.concat_tables([row("a", 1, 1.0), row("b", 2, 2.0)]))
    assert table.upsert(row("a", 1, 3.0, 2)).updated == 1
    assert table.delete_where("n = '2'").deleted == 1
    assert rows_of(table) == {"a": ("1", 3.0)}


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_texts_that_a_path_does_not_give_back_are_refused(text: str) -> None:
    table = table_of(row("a", 1, 1.0))
    with untouched(table, "partition column 'n' cannot be read back", PartitionPathError):
        table.upsert(row("b", text, 1.0))
    table.upsert(row("b", "a b=ü", 1.0))
    assert rows_of(table)["b"][0] == "a b=ü"


def test_changes_of_columns_are_refused() -> None:
    table = table_of(row("a", 1, 1.0))
    with pytest.raises(UnsupportedError, match="does not alter tables whose data files lack"):
        table.alter.rename_column("fare", "price")
