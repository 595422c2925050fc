"""Tables without meta fields: files store no keys, which writes make of the key columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.avro.schema import META_FIELDS
from hoodie.table import Table
from tests.unit.write.tables import SCHEMA, files_below, trips

BARE = {"hoodie.populate.meta.fields": "false"}
Rows = dict[tuple[str, str], float]


def table_of(path: Path, **wanted: Any) -> Table:
    wanted = {"record_key": "id", "partition_by": "city", "ordering": "ts", **wanted}
    return hoodie.create(path, SCHEMA, properties={**BARE, **wanted.pop("properties", {})}, spark=False, **wanted)


def rows_of(table: Table) -> Rows:
    found = table.to_arrow(columns=["id", "city", "fare"]).to_pylist()
    rows = {(row["id"], row["city"]): row["fare"] for row in found}
    assert len(rows) == len(found)
    return rows


@pytest.mark.parametrize("statistics", [False, True])
@pytest.mark.parametrize("index", [None, "global_simple"])
@pytest.mark.parametrize("ordering", ["ts", None])
def test_all_operations(tmp_path: Path, ordering: str | None, index: str | None, statistics: bool) -> None:
    properties = {"hoodie.metadata.index.column.stats.enable": "true"} if statistics else {}
    table = table_of(tmp_path / "t", ordering=ordering, index=index, properties=properties)
    table.bulk_insert(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc")))
    table.insert(trips(("c", 1, 3.0, "sf")))
    done = table.upsert(trips(("a", 2, 10.0, "sf"), ("d", 2, 4.0, "nyc")))
    assert (done.inserted, done.updated) == (1, 1)
    older = table.upsert(trips(("a", 1, 0.5, "sf")))
    assert (older.updated, older.ignored) == ((0, 1) if ordering else (1, 0))
    first = 10.0 if ordering else 0.5
    assert rows_of(table) == {("a", "sf"): first, ("b", "nyc"): 2.0, ("c", "sf"): 3.0, ("d", "nyc"): 4.0}
    assert table.delete(trips(("c", 1, None, "sf"))).deleted == 1
    assert table.delete(table.to_arrow(where="id = 'd'")).deleted == 1
    assert table.update({"fare": "fare + 100"}, where="id = 'b'").updated == 1
    assert table.delete_where("fare < 11").deleted == 1
    assert rows_of(table) == {("b", "nyc"): 102.0}
    assert table.to_arrow(columns=["id"], where="fare > 101 and city = 'nyc'")["id"].to_pylist() == ["b"]
    table.insert_overwrite(trips(("e", 1, 5.0, "nyc"), ("f", 1, 6.0, "sf")))
    assert rows_of(table) == {("e", "nyc"): 5.0, ("f", "sf"): 6.0}
    table.delete_partitions(["city=sf"])
    table.insert_overwrite_table(trips(("g", 1, 7.0, "la"), ("h", 1, 8.0, "la")))
    assert rows_of(table) == {("g", "la"): 7.0, ("h", "la"): 8.0}
    assert table.verify(full=True).ok
    assert table.to_arrow(columns=["id"], where="fare > 7")["id"].to_pylist() == ["h"]


def test_files_have_no_meta_values(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.insert(trips(("a", 1, 1.0, "sf")))
    table.upsert(trips(("a", 2, 2.0, "sf"), ("b", 2, 2.0, "sf")))
    files = sorted((tmp_path / "t").glob("city=sf/*.parquet"))
    assert len(files) == 2
    for file in files:
        parquet = pq.ParquetFile(file)
        assert not parquet.metadata.metadata
        rows = parquet.read()
        assert rows.column_names[:5] == list(META_FIELDS)
        assert all(rows[name].null_count == rows.num_rows for name in META_FIELDS)


def test_a_record_moves_to_another_partition(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", index="global_simple")
    table.insert(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "sf")))
    table.upsert(trips(("a", 2, 3.0, "nyc")))
    assert rows_of(table) == {("a", "nyc"): 3.0, ("b", "sf"): 2.0}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("key", [["id"], ["id", "ts"]], ids=len)
def test_keys_of_the_complex_key_generator(tmp_path: Path, key: list[str], version: int) -> None:
    """The encoding of keys that no file stores is of no account."""
    fields = ["city", "fare"]
    table = table_of(tmp_path / "t", record_key=key, partition_by=fields, ordering=None, table_version=version)
    table.insert(trips(("a", 1, 1.0, "sf"), ("b", 1, 1.0, "sf")))
    assert table.upsert(trips(("a", 1, 1.0, "sf"))).updated == 1
    assert table.to_arrow().num_rows == 2


def test_clustering_and_cleaning(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", properties={"hoodie.parquet.small.file.limit": "0"})
    for number in range(4):
        table.insert(trips((f"k{number}", 1, float(number), "sf")))
    before = rows_of(table)
    assert table.cluster(by="fare").instant
    assert rows_of(table) == before
    table.upsert(trips(("k1", 2, 50.0, "sf")))
    assert rows_of(table) == {**before, ("k1", "sf"): 50.0}
    assert table.verify(full=True).ok


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"type": "merge_on_read"}, "merge-on-read tables without meta fields"),
        ({"index": "record"}, "index 'record'"),
        ({"index": "bloom"}, "index 'bloom'"),
        ({"index": "bucket"}, "index 'bucket'"),
        ({"record_key": None, "ordering": None}, "without a record key"),
        ({"key_generator": "custom", "partition_by": "city:SIMPLE"}, "key generator CUSTOM"),
        ({"properties": {"hoodie.table.cdc.enabled": "true"}}, "change data"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_refused_when_it_is_created(tmp_path: Path, wanted: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        table_of(tmp_path / "t", **wanted)
    assert not (tmp_path / "t").exists()


def test_what_is_refused_later(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.insert(trips(("a", 1, 1.0, "sf")))
    before = files_below(tmp_path / "t")
    rows = pa.table({"id": ["a"], "ts": [2], "city": ["sf"]})
    merge = table.merge(rows, on="t.id = s.id AND t.city = s.city").when_matched_update({"ts": "s.ts"})
    for refused in (merge.execute, lambda: table.upsert(rows, partial=True), lambda: table.index.build("record")):
        with pytest.raises(UnsupportedError, match=r"meta fields|populate\.meta\.fields"):
            refused()
    with pytest.raises(InvalidConfigError, match=r"hoodie\.populate\.meta\.fields"):
        table.insert(trips(("b", 1, 1.0, "sf")), properties={"hoodie.populate.meta.fields": "true"})
    assert files_below(tmp_path / "t") == before
    upsert = table.merge(trips(("a", 2, 9.0, "sf")), on="t.id = s.id AND t.city = s.city")
    assert upsert.when_matched_update_all().when_not_matched_insert_all().execute().updated == 1
    assert rows_of(table) == {("a", "sf"): 9.0}
