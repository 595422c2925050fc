"""Keys inside structs: rows that lack the partition field name a record in any partition, as flat rows do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HoodieError, SchemaMismatchError, UnsupportedError
from hoodie.index import INDEXES
from tests.support.tables import new_table, values_of

ROWS = [("a", "x"), ("b", "y"), ("c", None), ("both", "x"), ("both", "y")]
ASKED = ["b", "c", "both", "nobody"]
NAMES = [kind.name for kind in INDEXES if kind.name != "hbase"]
TEXT = pa.string()
Form = Callable[[list[dict[str, Any]]], Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """Where key and partition are in a row, and its other values; fields below structs have dots in their names."""

    record_key: str | list[str]
    partition_by: str
    types: dict[str, pa.DataType]
    others: dict[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.types.items(), ("v", pa.int64())])

    def key(self, key: str) -> dict[str, Any]:
        """A row without the partition field."""
        return self._nested({self._key_field: key, **self.others})

    def row(self, key: str, path: str | None) -> dict[str, Any]:
        return self._nested({self._key_field: key, self.partition_by: path, **self.others})

    @property
    def _key_field(self) -> str:
        return self.record_key if isinstance(self.record_key, str) else self.record_key[0]

    def _nested(self, values: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in values.items():
            *structs, last = name.split(".")
            place = found
            for struct in structs:
                place = place.setdefault(struct, {})
            place[last] = value
        return found


BOTH = pa.struct([("id", TEXT), ("p", TEXT)])
DEEP = pa.struct([("in", pa.struct([("p", TEXT), ("id", TEXT)])), ("other", TEXT)])
SHAPES = {
    "one struct": Shape("m.id", "m.p", {"m": BOTH}),
    "deep": Shape("m.in.id", "m.in.p", {"m": DEEP}, {"m.other": "1"}),
    "nested partition": Shape("id", "m.p", {"id": TEXT, "m": pa.struct([("o", TEXT), ("p", TEXT)])}, {"m.o": "1"}),
    "nested key": Shape("m.id", "p", {"m": pa.struct([("id", TEXT)]), "p": TEXT}),
    "two key fields": Shape(["m.id", "n"], "m.p", {"m": BOTH, "n": pa.int64()}, {"n": 7}),
}
FORMS: dict[str, Form] = {
    "arrow": pa.Table.from_pylist,
    "dicts": lambda rows: rows,
    "pandas": lambda rows: pa.Table.from_pylist(rows).to_pandas(),
    "batches": lambda rows: pa.Table.from_pylist(rows).to_reader(max_chunksize=1),
}


def path_of(partition: str | None) -> str:
    return "__HIVE_DEFAULT_PARTITION__" if partition is None else partition


def table_of(shape: Shape, index: str, **options: Any) -> hoodie.Table:
    """A table with `ROWS`; with a global index, without the second record of one key. `v` is the row's number."""
    return new_table(
        shape.schema, rows_of(shape, index), record_key=shape.record_key, partition_by=shape.partition_by, index=index,
        properties={"hoodie.datasource.write.hive_style_partitioning": "false"}, **options,
    )  # fmt: skip


def rows_of(shape: Shape, index: str) -> list[dict[str, Any]]:
    return [{**shape.row(*row), "v": n} for n, row in enumerate(ROWS[: 4 if is_global(index) else 5])]


def is_global(index: str) -> bool:
    return next(kind for kind in INDEXES if kind.name == index).is_global


def stored(table: hoodie.Table) -> dict[tuple[str, str], int]:
    """Values by partition path and key, by a scan."""
    rows = values_of(table, "_hoodie_partition_path", "_hoodie_record_key", "v")
    return {(path, plain(key)): v for path, key, v in rows}


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
    table = table_of(own, index, type=table_type)
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
                table.upsert(rows_of(own, index))


@pytest.mark.parametrize("index", NAMES)
def test_bare_values_are_keys_of_any_partition(index: str) -> None:
    table = table_of(SHAPES["one struct"], index)
    model = stored(table)
    assert sorted(table.read_keys(ASKED)["v"].to_pylist()) == matched(model, [(None, key) for key in ASKED])
    places = table.record_locations(ASKED)["partition_path"].to_pylist()
    assert sorted(path for path in places if path) == sorted(path for path, key in model if key in ASKED)


@pytest.mark.parametrize("given", [[{"m": {"p": "y"}}], [{"m": "b"}], [{"v": 1}]], ids=str)
def test_rows_without_the_key_field_are_refused(given: Any) -> None:
    table = table_of(SHAPES["one struct"], "simple")
    for call in (table.read_keys, table.record_locations, table.filter_exists, table.delete):
        for data in (given, pa.Table.from_pylist(given)):
            with pytest.raises(SchemaMismatchError, match=r"lack \['m\.id'\]"):
                call(data)


@pytest.mark.parametrize(
    ("shape", "form", "index"),
    [
        (shape, form, ("simple", "global_simple")[number % 2])
        for number, (form, shape) in enumerate(product(FORMS, ("deep", "nested partition", "one struct")))
    ],
)
def test_written_rows_without_the_partition_field_are_refused(shape: str, form: str, index: str) -> None:
    """What the index is matters to merges only, so that each shape and form meets one of the two."""
    own = SHAPES[shape]
    table = table_of(own, index)
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
    table = table_of(own, "record")
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
    table = table_of(SHAPES["nested partition"], "simple")
    table.upsert([{"id": "d", "m": None, "v": 5}])
    assert stored(table)[path_of(None), "d"] == 5
