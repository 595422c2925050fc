"""Keys inside structs: rows that lack the partition field name a record in any partition, as flat rows do."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HoodieError, SchemaMismatchError, UnsupportedError
from hoodie.index import INDEXES

ROWS = [("a", "x"), ("b", "y"), ("c", None), ("both", "x"), ("both", "y")]
ASKED = ["b", "c", "both", "nobody"]
NAMES = [kind.name for kind in INDEXES if kind.name != "hbase"]
TEXT = pa.string()
Form = Callable[[list[dict[str, Any]]], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """Where key and partition are in a row; `row` and `key` make a row with and without the partition field."""

    record_key: Any
    partition_by: str
    fields: list[tuple[str, pa.DataType]]
    row: Callable[[str, str | None], dict[str, Any]]
    key: Callable[[str], dict[str, Any]]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.fields, ("v", pa.int64())])


DEEP = pa.struct([("in", pa.struct([("p", TEXT), ("id", TEXT)])), ("other", TEXT)])
SHAPES = {
    "one struct": Shape(
        "m.id",
        "m.p",
        [("m", pa.struct([("id", TEXT), ("p", TEXT)]))],
        lambda key, path: {"m": {"id": key, "p": path}},
        lambda key: {"m": {"id": key}},
    ),
    "deep": Shape(
        "m.in.id",
        "m.in.p",
        [("m", DEEP)],
        lambda key, path: {"m": {"in": {"id": key, "p": path}}},
        lambda key: {"m": {"in": {"id": key}}},
    ),
    "nested partition": Shape(
        "id",
        "m.p",
        [("id", TEXT), ("m", pa.struct([("o", TEXT), ("p", TEXT)]))],
        lambda key, path: {"id": key, "m": {"o": "1", "p": path}},
        lambda key: {"id": key, "m": {"o": "1"}},
    ),
    "nested key": Shape(
        "m.id",
        "p",
        [("m", pa.struct([("id", TEXT)])), ("p", TEXT)],
        lambda key, path: {"m": {"id": key}, "p": path},
        lambda key: {"m": {"id": key}},
    ),
    "two key fields": Shape(
        ["m.id", "n"],
        "m.p",
        [("m", pa.struct([("id", TEXT), ("p", TEXT)])), ("n", pa.int64())],
        lambda key, path: {"m": {"id": key, "p": path}, "n": 7},
        lambda key: {"m": {"id": key}, "n": 7},
    ),
}
FORMS: dict[str, Form] = {
    "arrow": pa.Table.from_pylist,
    "dicts": lambda rows: rows,
    "pandas": lambda rows: pa.Table.from_pylist(rows).to_pandas(),
    "batches": lambda rows: pa.Table.from_pylist(rows).to_reader(max_chunksize=1),
}


def path_of(partition: str | None) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if partition is None else partition


def new_table(shape: Shape, index: str, **options: Any) -> hoodie.Table:
    """A table with `ROWS`."""
    table = hoodie.create(
        f"memory://{uuid.uuid4()}",
        shape.schema,
        record_key=shape.record_key,
        partition_by=shape.partition_by,
        index=index,
        spark=False,
        properties={"hoodie.datasource.write.hive_style_partitioning": "false"},
        **options,
    )
    fill(table, shape, index)
    return table


def fill(table: hoodie.Table, shape: Shape, index: str) -> None:
    """Upsert `ROWS`; with a global index, without the second record of one key. `v` is the row's number."""
    rows = ROWS[: 4 if is_global(index) else 5]
    table.upsert(pa.Table.from_pylist([{**shape.row(*row), "v": n} for n, row in enumerate(rows)], shape.schema))


def is_global(index: str) -> bool:
    return next(kind for kind in INDEXES if kind.name == index).is_global


def stored(table: hoodie.Table) -> dict[tuple[str, str], int]:
    """Values by partition path and key, by a scan."""
    rows = table.to_arrow(["_hoodie_partition_path", "_hoodie_record_key", "v"]).to_pylist()
    return {(r["_hoodie_partition_path"], plain(r["_hoodie_record_key"])): r["v"] for r in rows}


def plain(key: str) -> str:
    """The first value of a key of one or two fields."""
    return key.removeprefix("m.id:").partition(",n:")[0]


def matched(model: dict[tuple[str, str], int], names: list[tuple[str | None, str]]) -> list[int]:
    """Values of the records that are named by partition path, or None for any, and key."""
    return sorted(v for (path, key), v in model.items() if any(key == k and p in (None, path) for p, k in names))


CASES = [
    *((index, shape, ["arrow"], "copy_on_write") for index in NAMES for shape in SHAPES),
    *((index, "one struct", ["dicts"], "merge_on_read") for index in ("simple", "record", "bucket")),
    ("simple", "deep", list(FORMS), "copy_on_write"),
]


@pytest.mark.matrix(keep=16)
@pytest.mark.parametrize(("index", "shape", "forms", "table_type"), CASES)
def test_look_ups_find_what_a_model_finds(index: str, shape: str, forms: list[str], table_type: str) -> None:
    own = SHAPES[shape]
    table = new_table(own, index, type=table_type)
    model = stored(table)
    for form in (FORMS[name] for name in forms):
        for partition in ("y", None):
            asked = [own.key(key) if partition is None else own.row(key, partition) for key in ASKED]
            context = (form, partition)
            read = sorted(table.read_keys(form(asked))["v"].to_pylist())
            assert read == matched(model, [(partition, key) for key in ASKED]), context
            names = [(None if is_global(index) else partition, key) for key in ASKED]
            places: Any = table.record_locations(form(asked))
            found = zip(places["partition_path"].to_pylist(), places["_hoodie_record_key"].to_pylist(), strict=True)
            values = [model[path, plain(key)] for path, key in found if path is not None]
            assert sorted(values) == matched(model, names), context
            new = table.filter_exists(form(asked)).num_rows
            assert new == sum(not matched(model, [name]) for name in names), context
            if partition is None and not is_global(index):
                with pytest.raises(SchemaMismatchError, match=rf"add \['{own.partition_by}'\]"):
                    table.delete(form(asked))
                assert stored(table) == model
            else:
                table.delete(form(asked))
                kept = set(model.values()) - set(matched(model, names))
                assert set(stored(table).values()) == kept, context
                fill(table, own, index)


@pytest.mark.parametrize("index", NAMES)
def test_bare_values_are_keys_of_any_partition(index: str) -> None:
    table = new_table(SHAPES["one struct"], index)
    model = stored(table)
    assert sorted(table.read_keys(ASKED)["v"].to_pylist()) == matched(model, [(None, key) for key in ASKED])
    places = table.record_locations(ASKED)["partition_path"].to_pylist()
    assert sorted(path for path in places if path) == sorted(path for path, key in model if key in ASKED)


@pytest.mark.parametrize("given", [[{"m": {"p": "y"}}], [{"m": "b"}], [{"v": 1}]], ids=str)
def test_rows_without_the_key_field_are_refused(given: Any) -> None:
    table = new_table(SHAPES["one struct"], "simple")
    for call in (table.read_keys, table.record_locations, table.filter_exists, table.delete):
        for data in (given, pa.Table.from_pylist(given)):
            with pytest.raises(SchemaMismatchError, match=r"lack \['m\.id'\]"):
                call(data)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("index", ["simple", "global_simple"])
@pytest.mark.parametrize("shape", ["deep", "nested partition", "one struct"])
def test_written_rows_without_the_partition_field_are_refused(shape: str, index: str, form: str) -> None:
    own = SHAPES[shape]
    table = new_table(own, index)
    before, instants = stored(table), table.timeline.instants
    rows = [{**own.key("b"), "v": 9}, {**own.key("new"), "v": 9}]
    merge = table.merge(FORMS[form](rows), "t.v = s.v")
    insert = merge.when_not_matched_insert({name: f"s.{name}" for name in own.schema.names})
    calls: list[Callable[[], object]] = [
        lambda: table.upsert(FORMS[form](rows)),
        lambda: table.insert(FORMS[form](rows)),
        lambda: table.bulk_insert(FORMS[form](rows)),
        lambda: table.upsert(FORMS[form](rows), partial=True),
        insert.execute,
    ]
    for call in calls:
        with pytest.raises(HoodieError, match=r"m\.") as error:
            call()
        # A merge by nested columns is refused, whatever the data is; partitions count with a partitioned index.
        assert isinstance(error.value, SchemaMismatchError | UnsupportedError)
    assert stored(table) == before
    assert table.timeline.instants == instants


def test_a_merge_into_a_table_with_a_nested_partition_field_keeps_the_rules_of_flat_ones() -> None:
    own = SHAPES["nested partition"]
    table = new_table(own, "record")
    rows = pa.Table.from_pylist([{**own.row("new", "z"), "v": 9}, {**own.row("b", "z"), "v": 9}], own.schema)
    merge = table.merge(rows, "t.id = s.id")
    with pytest.raises(HoodieError, match=r"sets \['m'\]"):
        merge.when_matched_update({"m": "s.m"}).execute()
    with pytest.raises(HoodieError, match=r"no value for \['m'\]"):
        merge.when_not_matched_insert({"id": "s.id", "v": "s.v"}).execute()
    merge.when_matched_update({"v": "s.v"}).when_not_matched_insert({"id": "s.id", "m": "s.m"}).execute()
    expected = {("x", "a"): 0, ("y", "b"): 9, (path_of(None), "c"): 2, ("x", "both"): 3, ("z", "new"): None}
    assert stored(table) == expected


def test_a_null_struct_is_a_null_partition() -> None:
    table = new_table(SHAPES["nested partition"], "simple")
    table.upsert([{"id": "d", "m": None, "v": 5}])
    assert stored(table)[path_of(None), "d"] == 5
