"""Types and columns by their names in Spark SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.avro.schema import DOC
from hoodie.records.sql.types import field_named, type_named

COLUMNS = {
    "int": pa.field("n", pa.int32()),
    "int not null": pa.field("n", pa.int32(), nullable=False),
    "decimal(9,2) NOT NULL COMMENT 'it''s'": pa.field("n", pa.decimal128(9, 2), nullable=False),
    "varchar(10)": pa.field("n", pa.string()),
    "struct<a:int not null,b:varchar(3)>": pa.field(
        "n", pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.string())])
    ),
    "map<string,array<date>>": pa.field("n", pa.map_(pa.string(), pa.list_(pa.field("element", pa.date32())))),
}


@pytest.mark.parametrize("text", COLUMNS)
def test_columns(text: str) -> None:
    assert field_named("n", text) == COLUMNS[text]


def test_a_comment_is_kept() -> None:
    assert field_named("a`b", "int comment 'cents'").metadata == {DOC: b"cents"}
    inner = field_named("n", "struct<a: int comment 'cents'>").type.field("a")
    assert inner.metadata == {DOC: b"cents"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "strang",
        "int, x",
        "int,",
        "int, ,",
        "int, x: int",
        "int)",
        "int> x",
        "int -- all",
        "map<string",
        "(int)",
        "int x",
        "not null",
        "comment 'a'",
    ],
)
def test_text_that_is_no_type_is_refused(text: str) -> None:
    for read in (type_named, lambda text: field_named("n", text)):
        with pytest.raises(InvalidConfigError) as raised:
            read(text)
        assert str(raised.value) == f"expected a type of Spark SQL, such as bigint or struct<a: int>, found {text!r}"


@pytest.mark.parametrize("rule", ["DEFAULT 3", "NULL", "UNIQUE", "PRIMARY KEY", "COLLATE utf8"])
def test_rules_that_the_format_lacks_are_refused(rule: str) -> None:
    for text in (f"int {rule}", f"struct<a: int {rule}, b: int>"):
        with pytest.raises(UnsupportedError, match=f"expected NOT NULL or COMMENT behind a type, found {rule}"):
            field_named("n", text)
        with pytest.raises(UnsupportedError, match=rule):
            type_named(text)


@pytest.mark.parametrize("text", ["map<int,int>", "array", "struct", "timestamp(3)", "interval day"])
def test_types_without_a_form_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError):
        field_named("n", text)


@pytest.mark.parametrize("text", ["int not null", "int comment 'a'"])
def test_a_type_alone_has_no_rule(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="expected a type of Spark SQL"):
        type_named(text)
