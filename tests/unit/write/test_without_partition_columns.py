"""Tables whose data files lack the partition columns: the partition path has their values."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import PartitionPathError, UnsupportedError
from hoodie.table import Table
from tests.unit.write.tables import files_below

DROPS = {"hoodie.datasource.write.drop.partition.columns": "true"}
SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("day", pa.date32()), ("fare", pa.float64())]
)
DAY = datetime.date(2026, 1, 2)
Rows = dict[str, tuple[str | None, float]]


def row(key: str, n: int | None, fare: float, ts: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "ts": ts, "n": n, "day": DAY, "fare": fare}], schema=SCHEMA)


def table_of(path: Path, **wanted: Any) -> Table:
    wanted = {"record_key": "id", "partition_by": "n", "ordering": "ts", **wanted}
    return hoodie.create(path, SCHEMA, properties={**DROPS, **wanted.pop("properties", {})}, spark=False, **wanted)


def rows_of(table: Table) -> Rows:
    found = table.to_arrow(columns=["id", "n", "fare"]).to_pylist()
    rows = {one["id"]: (one["n"], one["fare"]) for one in found}
    assert len(rows) == len(found)
    return rows


@pytest.mark.parametrize("hive_style", ["true", "false"])
@pytest.mark.parametrize("index", ["record", "partitioned_record", "simple", "global_simple", "bloom", "bucket"])
def test_all_operations(tmp_path: Path, index: str, hive_style: str) -> None:
    properties = {"hoodie.datasource.write.hive_style_partitioning": hive_style}
    statistics = {"hoodie.metadata.index.column.stats.enable": "true"} if hive_style == "true" else {}
    table = table_of(tmp_path / "t", index=index, properties={**properties, **statistics})
    table.bulk_insert(pa.concat_tables([row("a", 1, 1.0), row("b", 2, 2.0), row("z", None, 0.0)]))
    table.insert(row("c", 1, 3.0))
    done = table.upsert(pa.concat_tables([row("a", 1, 10.0, 2), row("d", 2, 4.0)]))
    assert (done.inserted, done.updated) == (1, 1)
    first: Rows = {"a": ("1", 10.0), "b": ("2", 2.0), "c": ("1", 3.0), "d": ("2", 4.0), "z": (None, 0.0)}
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
    for file in (tmp_path / "t").glob("*/*.parquet"):
        assert pq.read_schema(file).names[5:] == ["id", "ts", "day", "fare"]


def test_schemas_of_commits_lack_the_columns(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", partition_by=["n", "day"], record_key=["id", "ts"])
    assert table.schema.names == ["id", "ts", "fare", "n", "day"]
    table.insert(row("a", 1, 1.0))
    table.upsert(row("b", 1, 1.0).append_column("tip", pa.array([0.5])), schema="add_columns")
    assert table.schema.names == ["id", "ts", "fare", "tip", "n", "day"]
    found = table.to_arrow(columns=["n", "day"]).to_pylist()
    assert found == [{"n": "1", "day": "2026-01-02"}] * 2
    view = table.view()
    schema = view.commit_metadata(view.completed_writes()[-1]).schema
    assert [field["name"] for field in json.loads(schema or "")["fields"]] == ["id", "ts", "fare", "tip"]


def test_a_record_moves_and_clusterings_keep_the_values(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.insert(pa.concat_tables([row("a", 1, 1.0), row("b", 1, 2.0)]))
    assert table.upsert(row("a", 5, 3.0, 2)).updated == 1
    table.cluster(by="fare")
    assert rows_of(table) == {"a": ("5", 3.0), "b": ("1", 2.0)}
    assert table.verify(full=True).ok


def test_files_without_meta_fields_too(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", index="simple", properties={"hoodie.populate.meta.fields": "false"})
    table.insert(pa.concat_tables([row("a", 1, 1.0), row("b", 2, 2.0)]))
    assert table.upsert(row("a", 1, 3.0, 2)).updated == 1
    assert table.delete_where("n = '2'").deleted == 1
    assert rows_of(table) == {"a": ("1", 3.0)}


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_texts_that_a_path_does_not_give_back_are_refused(tmp_path: Path, text: str) -> None:
    table = table_of(tmp_path / "t")
    table.insert(row("a", 1, 1.0))
    before = files_below(tmp_path / "t")
    rows = row("b", 1, 1.0).set_column(2, "n", pa.array([text]))
    with pytest.raises(PartitionPathError, match="partition column 'n' cannot be read back"):
        table.upsert(rows)
    assert files_below(tmp_path / "t") == before
    table.upsert(row("b", 1, 1.0).set_column(2, "n", pa.array(["a b=ü"])))
    assert rows_of(table)["b"][0] == "a b=ü"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"type": "merge_on_read"}, "merge-on-read tables whose data files lack"),
        ({"key_generator": "custom", "partition_by": "n:SIMPLE"}, "key generator CUSTOM"),
        ({"partition_by": []}, "key generator NON_PARTITION"),
        ({"properties": {"hoodie.table.cdc.enabled": "true"}}, "change data"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_refused(tmp_path: Path, wanted: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        table_of(tmp_path / "t", **wanted)
    assert not (tmp_path / "t").exists()


def test_changes_of_columns_are_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.insert(row("a", 1, 1.0))
    with pytest.raises(UnsupportedError, match="does not alter tables whose data files lack"):
        table.alter.rename_column("fare", "price")
