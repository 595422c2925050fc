"""ALTER TABLE without Spark: what each statement changes, and which are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.table import Table
from hoodie.write.result import AlterResult
from tests.support.tables import new_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        pa.field("n", pa.int32(), nullable=False),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("m", pa.map_(pa.string(), pa.struct([("u", pa.int32())]))),
        ("l", pa.list_(pa.struct([("v", pa.int32())]))),
    ]
)
ROW = {"id": "a", "n": 1, "s": {"x": 1, "y": "y"}, "m": [("k", {"u": 1})], "l": [{"v": 1}]}


@pytest.fixture
def t() -> Table:
    return new_table(SCHEMA, [ROW])


def _run(t: Table, text: str) -> Any:
    return hoodie.sql(None, f"ALTER TABLE t {text}", tables={"t": t})


def _row(t: Table) -> dict[str, Any]:
    (row,) = t.to_arrow(t.schema.names).to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("ADD COLUMN z int", ("column z added: int32",)),
        ("ADD COLUMNS (z int, `s`.z struct<a: int, b: array<decimal(5,1)>> COMMENT 'it''s, (new)' FIRST)", 2),
        ("add columns z map<string,int> after n, y string first;", 2),
        ("RENAME COLUMN s.y TO z", ("column s.y renamed to z",)),
        ("DROP COLUMN l", ("column l dropped",)),
        ("DROP COLUMNS (m.value.u, s.x)", SchemaMismatchError),
        ("DROP COLUMNS (m, s.x)", ("column m dropped", "column s.x dropped")),
        ("DROP COLUMN IF EXISTS no", ()),
        ("DROP COLUMN no", SchemaMismatchError),
        ("ALTER COLUMN n TYPE bigint", ("column n: int32 -> int64",)),
        ("CHANGE COLUMN l.element.v TYPE string", ("column l.element.v: int32 -> string",)),
        ("CHANGE n n double COMMENT 'wide' AFTER s", 3),
        ("ALTER n COMMENT 'a number'", ("comment of column n: a number",)),
        ("ALTER COLUMN n FIRST", ("column n moved first",)),
        ("ALTER COLUMN s.y DROP NOT NULL", ()),
        ("ALTER COLUMN n DROP NOT NULL", ("column n: not null -> nullable",)),
        ("SET TBLPROPERTIES ('hoodie.clean.commits.retained' = '20')", 1),
        ("SET TBLPROPERTIES (hoodie.clean.commits.retained = 20, hoodie.parquet.small.file.limit '0')", 2),
        ("UNSET TBLPROPERTIES IF EXISTS ('hoodie.clean.commits.retained')", ()),
    ],
)
def test_statements(t: Table, statement: str, changes: Any) -> None:
    if isinstance(changes, type):
        with pytest.raises(changes):
            _run(t, statement)
        assert t.schema == SCHEMA
        return
    result = _run(t, statement)
    assert isinstance(result, AlterResult)
    found = len(result.changes) if isinstance(changes, int) else result.changes
    assert found == changes
    assert t.verify(full=True).ok


def test_the_columns_that_statements_leave(t: Table) -> None:
    _run(t, "ADD COLUMNS (z struct<a: int, b: array<string>> COMMENT 'it\\'s' AFTER id)")
    _run(t, "RENAME COLUMN m.value.u TO `uu`")
    _run(t, "CHANGE COLUMN n n string COMMENT 'text' FIRST")
    assert t.schema.names == ["n", "id", "z", "s", "m", "l"]
    assert t.schema.field("z").type == pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.string())))])
    assert {child.name: child.metadata for child in t.schema if child.metadata} == {
        "n": {b"doc": b"text"},
        "z": {b"doc": b"it's"},
    }
    assert _row(t) == ROW | {"n": "1", "z": None, "m": [("k", {"uu": 1})]}
    hoodie.sql(None, "UPDATE t SET n = '5'", tables={"t": t})
    assert _row(t)["n"] == "5"


def test_a_table_by_its_path(t: Table) -> None:
    hoodie.sql(None, f"ALTER TABLE hudi.`{t.path}` ADD COLUMN z int;")
    assert t.schema.names[-1] == "z"


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("ADD COLUMN z int NOT NULL", UnsupportedError, "NOT NULL and DEFAULT are not there"),
        ("ADD COLUMNS (z int DEFAULT 5)", UnsupportedError, "NOT NULL and DEFAULT are not there"),
        ("ADD COLUMNS (z int", InvalidConfigError, "expected a comma or a closing parenthesis, found the end"),
        ("ADD COLUMNS (z int) x", InvalidConfigError, "expected the end of the statement, found 'x'"),
        ("ADD COLUMN z", InvalidConfigError, "expected a type, found the end"),
        ("ADD COLUMN z money", InvalidConfigError, "a type of Spark SQL, .* found 'money'"),
        ("ADD COLUMN z map<int, int>", UnsupportedError, "keys of the type string"),
        ("ADD COLUMN 'z' int", InvalidConfigError, "expected a name"),
        ("ALTER COLUMN n SET NOT NULL", UnsupportedError, "stored rows may have nulls"),
        ("ALTER COLUMN n SET DEFAULT 5", UnsupportedError, "no defaults"),
        ("ALTER COLUMN n COMMENT", InvalidConfigError, "expected a text in quotes"),
        ("CHANGE COLUMN n k int", UnsupportedError, "RENAME COLUMN n TO k"),
        ("RENAME COLUMN n k", InvalidConfigError, "expected TO"),
        ("REPLACE COLUMNS (id string)", UnsupportedError, "drop and add columns"),
        ("ADD PARTITION (p = 1)", UnsupportedError, "expected ADD, RENAME"),
        ("SET TBLPROPERTIES (primaryKey = 'n')", InvalidConfigError, "primaryKey"),
        ("SET TBLPROPERTIES (hoodie.table.version = 8)", InvalidConfigError, "fixed when the table is created"),
        ("SET TBLPROPERTIES (hoodie.index.type = 'BLOOM')", InvalidConfigError, r"t\.index\.switch"),
        ("SET TBLPROPERTIES (hoodie.metadata.index.column.stats.enable = true)", InvalidConfigError, r"t\.index\."),
        ("SET TBLPROPERTIES (hoodie.write.lock.provider = 'x')", InvalidConfigError, "another lock"),
        ("SET TBLPROPERTIES (hoodie.clean.commits.retained = 'many')", InvalidConfigError, "retained='many'"),
        ("SET TBLPROPERTIES (hoodie.no.such = 1)", InvalidConfigError, "no.such"),
        ("UNSET TBLPROPERTIES (hoodie.table.name)", InvalidConfigError, "fixed when the table is created"),
        ("SET LOCATION '/x'", UnsupportedError, "ALTER"),
    ],
)
def test_refused(t: Table, statement: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _run(t, statement)
    assert t.schema == SCHEMA
    assert len(t.timeline) == 1


def test_properties_are_options_of_later_calls(t: Table) -> None:
    t.alter.set_property("hoodie.parquet.small.file.limit", 0)
    assert t.view().config.raw["hoodie.parquet.small.file.limit"] == "0"
    assert t.insert([ROW | {"id": "b"}]).files_created == 1
    result = t.alter.unset_properties(["hoodie.parquet.small.file.limit", "hoodie.clean.commits.retained"])
    assert result.changes == ("hoodie.parquet.small.file.limit: 0 -> not set",)
    assert result.notes == ("hoodie.clean.commits.retained is not stored",)
    assert t.insert([ROW | {"id": "c"}]).files_created == 0
