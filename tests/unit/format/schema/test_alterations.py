"""Changes of columns: what each does to the record of the columns, and which changes are refused."""

from __future__ import annotations

import copy

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.format.schema.alterations import (
    AddColumn,
    AllowNull,
    Alteration,
    ChangeType,
    DropColumn,
    MoveColumn,
    Place,
    RenameColumn,
    SetComment,
    stored_path,
)
from hoodie.format.schema.id_record import Record, record_of, refuse_types_without_ids, schema_of
from hoodie.format.schema.table_schema import with_meta_fields

_STRUCT = pa.struct([pa.field("v", pa.int32()), pa.field("w", pa.decimal128(10, 2))])
_COLUMNS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("i", pa.int32(), metadata={b"doc": b"a number"}),
        pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("deep", _STRUCT)])),
        pa.field("l", pa.list_(pa.field("element", _STRUCT, nullable=False))),
        pa.field("m", pa.map_(pa.string(), pa.field("value", pa.list_(pa.field("element", pa.float32()))))),
    ]
)
_META = with_meta_fields(pa.schema([])).names


def _after(*changes: Alteration) -> Record:
    record = record_of(with_meta_fields(_COLUMNS))
    for change in changes:
        change.apply(record)
    return record


def _schema(record: Record) -> pa.Schema:
    return pa.schema(list(schema_of(record))[len(_META) :])


def test_ids_are_consecutive_in_each_record_and_depth_first() -> None:
    record = _after()
    assert [(found["id"], found["name"]) for found in record["fields"][5:]] == list(
        zip(range(5, 10), _COLUMNS.names, strict=True)
    )
    deep = record["fields"][7]["type"]["fields"]
    assert [found["id"] for found in deep] == [10, 11]
    assert [found["id"] for found in deep[1]["type"]["fields"]] == [12, 13]
    assert record["fields"][8]["type"]["element_id"] == 14
    assert {key: record["fields"][9]["type"][key] for key in ("key_id", "value_id")} == {"key_id": 17, "value_id": 18}
    assert record["max_column_id"] == 19


def test_a_record_has_all_that_the_schema_has() -> None:
    found = schema_of(_after())
    assert found.equals(with_meta_fields(_COLUMNS), check_metadata=True)


@pytest.mark.parametrize(
    ("change", "path", "kind"),
    [
        (ChangeType("i", pa.int64()), "i", pa.int64()),
        (ChangeType("l.element.w", pa.decimal128(12, 4)), "l.element.w", pa.decimal128(12, 4)),
        (ChangeType("m.value.element", pa.float64()), "m.value.element", pa.float64()),
        (AddColumn("s.deep.n", pa.date32()), "s.deep.n", pa.date32()),
        (RenameColumn("s.deep.v", "u"), "s.deep.u", pa.int32()),
        (AddColumn("S.DEEP.n", pa.date32()), "s.deep.n", pa.date32()),
    ],
)
def test_paths_lead_to_fields_items_and_values(change: Alteration, path: str, kind: pa.DataType) -> None:
    record = _after(change)
    assert stored_path(record, path.upper().replace("ELEMENT", "element").replace("VALUE", "value")) == path
    with pytest.raises(SchemaMismatchError, match="cannot become"):
        ChangeType(path, pa.bool_()).apply(copy.deepcopy(record))
    unchanged = copy.deepcopy(record)
    ChangeType(path, kind).apply(unchanged)
    assert unchanged == record


def test_new_columns_get_ids_that_no_column_had() -> None:
    record = _after(DropColumn("m"), AddColumn("m", _STRUCT), AddColumn("n", pa.int32()))
    added = record["fields"][-2:]
    assert [found["id"] for found in added] == [20, 23]
    assert [found["id"] for found in added[0]["type"]["fields"]] == [21, 22]
    assert record["max_column_id"] == 23


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ([MoveColumn("i", Place(first=True))], ["i", "id", "s", "l", "m"]),
        ([MoveColumn("i", Place(after="L"))], ["id", "s", "l", "i", "m"]),
        ([AddColumn("n", pa.int32(), place=Place(after="id"))], ["id", "n", "i", "s", "l", "m"]),
        ([AddColumn("n", pa.int32())], ["id", "i", "s", "l", "m", "n"]),
    ],
)
def test_places(changes: list[Alteration], names: list[str]) -> None:
    assert _schema(_after(*changes)).names == names


def test_a_field_moves_in_its_struct() -> None:
    moved = _schema(_after(MoveColumn("s.deep", Place(first=True))))
    assert [child.name for child in moved.field("s").type.fields] == ["deep", "x"]


def test_nulls_and_comments() -> None:
    changes = (
        AllowNull("s.x"),
        AllowNull("l.element"),
        AllowNull("id"),
        SetComment("i", None),
        SetComment("s.x", "x!"),
    )
    schema = _schema(_after(*changes))
    assert schema.field("id").nullable
    assert schema.field("s").type.field("x").nullable
    assert schema.field("l").type.value_field.nullable
    assert schema.field("i").metadata is None
    assert schema.field("s").type.field("x").metadata == {b"doc": b"x!"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (AddColumn("_hoodie_operation", pa.string()), "the name of a meta column"),
        (RenameColumn("id", "_Hoodie_Operation"), "the name of a meta column"),
        (AddColumn("I", pa.int32()), "has a column 'i' there"),
        (AddColumn("no.n", pa.int32()), "no column 'no'; expected one of id, i, s, l, m"),
        (AddColumn("i.n", pa.int32()), "'i' is no struct"),
        (AddColumn("l.n", pa.int32()), "'l' is no struct"),
        (AddColumn("n", pa.int32(), place=Place(after="no")), "no column 'no'"),
        (RenameColumn("i", "S"), "has a column 's' there"),
        (RenameColumn("s.x", "s.y"), "without its struct"),
        (RenameColumn("l.element", "e"), "which has a name"),
        (RenameColumn("_hoodie_record_key", "k"), "no column '_hoodie_record_key'"),
        (DropColumn("m.value"), "which has a name"),
        (DropColumn("m.key"), "expected 'value', found 'key'"),
        (DropColumn("i.x"), "no field below a plain type"),
        (DropColumn("l.element.w"), "last column of a table or struct"),
        (ChangeType("s", pa.string()), "only plain types change"),
        (ChangeType("i", _STRUCT), "only plain types change"),
        (ChangeType("i", pa.decimal128(10, 2)), "at least 10 digits before the point"),
        (ChangeType("s.deep.w", pa.decimal128(12, 5)), "at least 8 digits before the point and 2 behind"),
        (ChangeType("id", pa.int32()), "string cannot become int32"),
        (ChangeType("s.x", pa.int32()), "int64 cannot become int32"),
    ],
)
def test_refused(change: Alteration, message: str) -> None:
    with pytest.raises(SchemaMismatchError, match=message):
        change.apply(_after(DropColumn("l.element.v")))


@pytest.mark.parametrize(
    ("change", "ids"),
    [
        (AddColumn("n", pa.int32(), place=Place(first=True)), False),
        (ChangeType("i", pa.int64()), False),
        (ChangeType("l.element.w", pa.decimal128(12, 2)), False),
        (ChangeType("l.element.w", pa.decimal128(12, 3)), True),
        (ChangeType("i", pa.float64()), True),
        (RenameColumn("i", "j"), True),
        (DropColumn("i"), True),
        (SetComment("i", "x"), False),
    ],
)
def test_which_changes_need_ids(change: Alteration, ids: bool) -> None:
    assert change.needs_ids(_after()) is ids


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.time32("ms")])
def test_types_that_the_jvm_cannot_read_get_no_ids(kind: pa.DataType) -> None:
    record = _after(AddColumn("s.deep.t", kind))
    with pytest.raises(UnsupportedError, match=r"type of 's.deep.t'"):
        refuse_types_without_ids(record, "the table")


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (pa.int64(), pa.float64(), "more than 53 bits are rounded"),
        (pa.int32(), pa.float32(), "more than 24 bits are rounded"),
        (pa.float64(), pa.decimal128(10, 2), "rounded to 2 digits"),
        (pa.string(), pa.date32(), "no date makes reads fail"),
        (pa.binary(), pa.string(), "not valid UTF-8"),
        (pa.int32(), pa.float64(), ""),
    ],
)
def test_losses_are_noted(old: pa.DataType, new: pa.DataType, note: str) -> None:
    record = _after(AddColumn("n", old))
    _, *notes = ChangeType("n", new).apply(record)
    assert (note in notes[0]) if note else not notes
