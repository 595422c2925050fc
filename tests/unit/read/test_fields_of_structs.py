"""`columns=` takes fields of structs; only these are read from base files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import CorruptFileError, InvalidConfigError, SchemaMismatchError
from hoodie.read.chosen_columns import WHOLE, chosen_columns, narrowed
from tests.support.rows import assert_same_rows
from tests.support.tables import new_table

INNER = pa.struct([("d", pa.int64()), ("e", pa.string())])
OUTER = pa.struct([("a", pa.int64()), ("B", pa.string()), ("c", INNER)])
ROWS = pa.table(
    {
        "id": ["1", "2", "3", "4"],
        "st": pa.array(
            [
                {"a": 1, "B": "x", "c": {"d": 10, "e": "q"}},
                None,
                {"a": None, "B": "z", "c": None},
                {"a": 4, "B": None, "c": {"d": 40, "e": None}},
            ],
            OUTER,
        ),
        "l": pa.array([[{"x": 1}], [], None, []], pa.list_(pa.struct([("x", pa.int64())]))),
    }
)


@pytest.fixture(params=["cow", "mor", "mor with logs"])
def table(request: pytest.FixtureRequest) -> hoodie.Table:
    logged = [ROWS.slice(0, 2)] if request.param == "mor with logs" else []
    return new_table(ROWS.schema, ROWS, *logged, type=request.param[:3])


def test_a_field_is_returned_under_its_own_name(table: hoodie.Table) -> None:
    expected = pa.table({"id": ["1", "2", "3", "4"], "a": [1, None, None, 4], "d": [10, None, None, 40]})
    assert_same_rows(table.to_arrow(columns=["id", "ST.a", "st.C.d"]), expected)
    batches = table.to_batches(["id", "st.a", "st.c.d"])
    assert batches.schema == expected.schema
    assert_same_rows(batches.read_all(), expected)
    assert table.to_arrow(columns="st.c").schema == pa.schema([("c", INNER)])
    assert table.to_pandas("st.b").columns.tolist() == ["B"]
    assert table.head(1, columns="st.a", where="id = '4'").to_pylist() == [{"a": 4}]
    assert table.read_keys(["4"], columns=["st.c.d", "id"]).to_pylist() == [{"d": 40, "id": "4"}]


@pytest.mark.parametrize(
    ("where", "expected"),
    [("st.c.e = 'q'", [1]), ("st IS NULL", [None]), ("st.a IS NULL AND id = '3'", [None]), ("st.d.e = 1", None)],
)
def test_conditions_read_other_fields(table: hoodie.Table, where: str, expected: list[int | None] | None) -> None:
    if expected is None:
        with pytest.raises(SchemaMismatchError, match=r"no column 'st\.d'"):
            table.to_arrow(columns="st.a", where=where)
        return
    assert table.to_arrow(columns="st.a", where=where)["a"].to_pylist() == expected


@pytest.mark.parametrize(
    ("columns", "error", "reason"),
    [
        (["st.a", "st.x"], SchemaMismatchError, r"\['st\.x'\] are not in the table"),
        (["l.x"], SchemaMismatchError, "not in the table"),
        (["st.a.z"], SchemaMismatchError, "not in the table"),
        ([".a"], SchemaMismatchError, "not in the table"),
        (["st.a", "st.c.d", "st.a"], InvalidConfigError, r"\['a'\] would be returned twice"),
        (["id", "id"], InvalidConfigError, r"\['id'\] would be returned twice"),
        (["id", "st", "ID"], InvalidConfigError, r"\['id'\] would be returned twice"),
    ],
)
def test_wrong_fields_are_refused(columns: list[str], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        chosen_columns(ROWS.schema, columns)


def test_every_read_refuses_a_column_that_is_named_twice(table: hoodie.Table) -> None:
    for read in (table.to_arrow, table.to_pandas, table.to_batches):
        with pytest.raises(InvalidConfigError, match="returned twice"):
            read(["id", "ID"])
    with pytest.raises(InvalidConfigError, match="returned twice"):
        table.to_dataset().to_table(columns=["id", "id"])


def test_a_column_with_a_dot_takes_precedence() -> None:
    schema = pa.schema([("st.a", pa.int32()), ("st", OUTER), ("a", pa.int32())])
    assert chosen_columns(schema, ["ST.A"]) == (("st.a",), WHOLE)
    assert chosen_columns(schema, ["st.a", "st.c.d"]) == (("st.a", "st"), (("st.a",), ("st", "c", "d")))
    with pytest.raises(InvalidConfigError, match="twice"):
        chosen_columns(schema, ["a", "st.B", "st.c.d", "st.c.e", "st", "st.C", "ST.b"])


def test_a_narrowed_struct_has_the_fields_that_are_needed() -> None:
    narrow = narrowed(ROWS.schema, [("st", "c", "d"), ("id",)])
    assert narrow.field("st").type == pa.struct([("c", pa.struct([("d", pa.int64())]))])
    assert narrow.field("l") == ROWS.schema.field("l")
    assert narrowed(ROWS.schema, [("st", "a"), ("st",)]) == ROWS.schema


def test_only_the_field_is_read_from_a_base_file(tmp_path: Path) -> None:
    """The pages of the other field are damaged: a read of them would fail."""
    t = new_table(ROWS.schema, ROWS, path=tmp_path / "t")
    (path,) = (tmp_path / "t").glob("*.parquet")
    group = pq.read_metadata(path).row_group(0)
    other = next(group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == "st.B")
    data = bytearray(path.read_bytes())
    place = other.data_page_offset + other.total_compressed_size // 2
    data[place] ^= 0xFF
    path.write_bytes(data)
    assert sorted(t.to_arrow(columns="st.a", where="st.c.d > 0")["a"].to_pylist()) == [1, 4]
    with pytest.raises(CorruptFileError):
        t.to_arrow(columns="st")


def test_a_file_without_the_field_has_nulls() -> None:
    t = new_table(ROWS.schema, ROWS)
    wider = pa.struct([*OUTER, pa.field("f", pa.int64())])
    t.upsert(pa.table({"id": ["9"], "st": pa.array([{"a": 9, "f": 90}], wider), "l": ROWS["l"].slice(2, 1)}))
    found = {row["id"]: row["f"] for row in t.to_arrow(columns=["id", "st.f"]).to_pylist()}
    assert found == {"1": None, "2": None, "3": None, "4": None, "9": 90}
