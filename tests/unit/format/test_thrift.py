"""Thrift's compact protocol: what is not changed is encoded as before; damaged bytes are a ValueError."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.format.parquet_footer import footer_of
from hoodie.format.thrift import I16, Value, struct_fields, struct_to_bytes


def footer(columns: int, groups: int) -> bytes:
    sink = io.BytesIO()
    table = pa.table({f"c{number}": [1.5, 2.5, None, 0.5] * groups for number in range(columns)})
    pq.write_table(table, sink, row_group_size=4, write_page_index=True)
    return footer_of(pq.read_metadata(sink))


@pytest.mark.parametrize(("columns", "groups"), [(1, 1), (14, 3), (15, 15), (40, 20)])
def test_a_footer_is_encoded_as_before(columns: int, groups: int) -> None:
    data = footer(columns, groups)
    fields = struct_fields(data)
    assert struct_to_bytes(fields) == data
    items = fields[4].items
    assert len(items) == groups
    assert Value.of_structs([struct_to_bytes(struct_fields(item)) for item in items]) == fields[4]


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -65, 2**31, 2**63 - 1, -(2**63)])
def test_numbers(number: int) -> None:
    assert Value.of_int(number).number == number
    fields = {1: Value.of_int(number), 20: Value.of_int(3, I16), 200: Value.of_content(b"text")}
    found = struct_fields(struct_to_bytes(fields))
    assert found == fields
    assert found[200].content == b"text"


def test_damaged_bytes_are_a_value_error() -> None:
    data, drawn = footer(5, 3), random.Random(7)
    for _ in range(3000):
        changed = bytearray(data[: drawn.randrange(len(data) + 1)])
        for _ in range(drawn.randrange(4)):
            if changed:
                changed[drawn.randrange(len(changed))] = drawn.randrange(256)
        try:
            for value in struct_fields(bytes(changed)).values():
                if value.kind == 9:
                    for item in value.items:
                        struct_fields(item)
        except ValueError:
            continue
    with pytest.raises(ValueError, match="nested too deep"):
        struct_fields(b"\x1c" * 10_000)
