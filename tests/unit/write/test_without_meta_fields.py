"""Tables without meta fields: files store no keys, which writes make of the key columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.avro.schema import META_FIELDS
from hoodie.table import Table
from tests.support.tables import values_of
from tests.unit.write.tables import files_of, new_table, trips, untouched


def table_of(*data: pa.Table, properties: Mapping[str, str] | None = None, **wanted: Any) -> Table:
    return new_table(*data, properties={"hoodie.populate.meta.fields": "false", **(properties or {})}, **wanted)


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return values_of(table, "id", "city", "fare")


@pytest.mark.parametrize(
    ("ordering", "index", "statistics"),
    [("ts", None, False), ("ts", "global_simple", True), (None, None, True), (None, "global_simple", False)],
)
def test_all_operations(ordering: str | None, index: str | None, statistics: bool) -> None:
    """Every two of the three choices meet: none of them is an argument of another."""
    properties = {"hoodie.metadata.index.column.stats.enable": "true"} if statistics else {}
    table = table_of(ordering=ordering, index=index, properties=properties)
    table.bulk_insert(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc")))
    table.insert(trips(("c", 1, 3.0, "sf")))
    done = table.upsert(trips(("a", 2, 10.0, "sf"), ("d", 2, 4.0, "nyc")))
    assert (done.inserted, done.updated) == (1, 1)
    older = table.upsert(trips(("a", 1, 0.5, "sf")))
    assert (older.updated, older.ignored) == ((0, 1) if ordering else (1, 0))
    first = 10.0 if ordering else 0.5
    assert rows_of(table) == [("a", "sf", first), ("b", "nyc", 2.0), ("c", "sf", 3.0), ("d", "nyc", 4.0)]
    assert table.delete(trips(("c", 1, None, "sf"))).deleted == 1
    assert table.delete(table.to_arrow(where="id = 'd'")).deleted == 1
    assert table.update({"fare": "fare + 100"}, where="id = 'b'").updated == 1
    assert table.delete_where("fare < 11").deleted == 1
    assert rows_of(table) == [("b", "nyc", 102.0)]
    assert table.to_arrow(columns=["id"], where="fare > 101 and city = 'nyc'")["id"].to_pylist() == ["b"]
    table.insert_overwrite(trips(("e", 1, 5.0, "nyc"), ("f", 1, 6.0, "sf")))
    assert rows_of(table) == [("e", "nyc", 5.0), ("f", "sf", 6.0)]
    table.delete_partitions(["city=sf"])
    table.insert_overwrite_table(trips(("g", 1, 7.0, "la"), ("h", 1, 8.0, "la")))
    assert rows_of(table) == [("g", "la", 7.0), ("h", "la", 8.0)]
    assert table.verify(full=True).ok
    assert table.to_arrow(columns=["id"], where="fare > 7")["id"].to_pylist() == ["h"]


def test_files_have_no_meta_values() -> None:
    table = table_of()
    table.insert(trips(("a", 1, 1.0, "sf")))
    table.upsert(trips(("a", 2, 2.0, "sf"), ("b", 2, 2.0, "sf")))
    files = [data for path, data in files_of(table).items() if path.startswith("city=sf/") and path.endswith("t")]
    assert len(files) == 2
    for data in files:
        parquet = pq.ParquetFile(pa.BufferReader(data))
        assert not parquet.metadata.metadata
        rows = parquet.read()
        assert rows.column_names[:5] == list(META_FIELDS)
        assert all(rows[name].null_count == rows.num_rows for name in META_FIELDS)


def test_a_record_moves_to_another_partition() -> None:
    table = table_of(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "sf")), index="global_simple")
    table.upsert(trips(("a", 2, 3.0, "nyc")))
    assert rows_of(table) == [("a", "nyc", 3.0), ("b", "sf", 2.0)]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("key", [["id"], ["id", "ts"]], ids=len)
def test_keys_of_the_complex_key_generator(key: list[str], version: int) -> None:
    """The encoding of keys that no file stores is of no account."""
    fields = ["city", "fare"]
    rows = trips(("a", 1, 1.0, "sf"), ("b", 1, 1.0, "sf"))
    table = table_of(rows, record_key=key, partition_by=fields, ordering=None, table_version=version)
    assert table.upsert(trips(("a", 1, 1.0, "sf"))).updated == 1
    assert table.to_arrow().num_rows == 2


def test_clustering_and_cleaning() -> None:
    table = table_of(properties={"hoodie.parquet.small.file.limit": "0"})
    for number in range(4):
        table.insert(trips((f"k{number}", 1, float(number), "sf")))
    before = rows_of(table)
    assert table.cluster(by="fare").instant
    assert rows_of(table) == before
    table.upsert(trips(("k1", 2, 50.0, "sf")))
    assert rows_of(table) == sorted({*before, ("k1", "sf", 50.0)} - {("k1", "sf", 1.0)})
    assert table.verify(full=True).ok


def test_what_is_refused() -> None:
    table = table_of(trips(("a", 1, 1.0, "sf")))
    rows = pa.table({"id": ["a"], "ts": [2], "city": ["sf"]})
    merge = table.merge(rows, on="t.id = s.id AND t.city = s.city").when_matched_update({"ts": "s.ts"})
    for refused in (merge.execute, lambda: table.upsert(rows, partial=True), lambda: table.index.build("record")):
        with untouched(table, r"meta fields|populate\.meta\.fields", UnsupportedError):
            refused()
    with untouched(table, r"hoodie\.populate\.meta\.fields", InvalidConfigError):
        table.insert(trips(("b", 1, 1.0, "sf")), properties={"hoodie.populate.meta.fields": "true"})
    upsert = table.merge(trips(("a", 2, 9.0, "sf")), on="t.id = s.id AND t.city = s.city")
    assert upsert.when_matched_update_all().when_not_matched_insert_all().execute().updated == 1
    assert rows_of(table) == [("a", "sf", 9.0)]
