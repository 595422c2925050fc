"""Plain types of Arrow data at any depth, and texts that are not valid UTF-8."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.plain_types import (
    plain_array,
    plain_batches,
    plain_schema,
    plain_type,
    refuse_wrong_text,
    valid_batches,
)
from tests.support.odd_types import WRAPPERS, pairs_of_all_depths, text_of_bytes


def test_values_stay_at_every_depth() -> None:
    for name, (plain, odd) in pairs_of_all_depths():
        assert plain_type(odd.type) == plain.type, name
        found = plain_array(odd)
        found.validate(full=True)
        assert found.type == plain.type, name
        assert found.to_pylist() == plain.to_pylist(), name
        assert plain_array(odd.slice(1, 2)).to_pylist() == plain.to_pylist()[1:3], name
        assert plain_array(odd.slice(2, 0)).to_pylist() == [], name


def test_plain_arrays_are_not_copied() -> None:
    for name, (plain, _) in pairs_of_all_depths():
        assert plain_array(plain) is plain, name
        assert plain_type(plain.type) is plain.type, name


def test_types_that_no_table_stores_stay() -> None:
    kinds = [pa.null(), pa.uint64(), pa.duration("s"), pa.sparse_union([pa.field("a", pa.string_view())])]
    schema = pa.schema([pa.field(str(number), kind) for number, kind in enumerate(kinds)])
    assert plain_schema(schema) == schema


def test_a_column_that_arrow_cannot_read_is_named() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 0, 7]), pa.array(["a"]), safe=False)
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), codes], names=["n", "t"])
    with pytest.raises(SchemaMismatchError, match=r"column 't', row 5: Arrow cannot make string of its dictionary"):
        list(plain_batches(batch, plain_schema(batch.schema), 5))


WRONG = {"latin": b"caf\xe9", "half a character": "ä".encode()[:1], "surrogate": b"\xed\xa0\x80", "long": b"\xc0\x80"}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_text_that_is_not_utf8_is_refused_with_its_row(wrong: bytes) -> None:
    leaf = text_of_bytes(*[wrong if number == 17 else b"ok" for number in range(40)])
    cases = {"plain": (leaf, 17), "sliced": (leaf.slice(10), 7)}
    for outer, (make, _) in WRAPPERS.items():
        if outer != "list view":
            cases[outer] = (make(leaf), 17 if "struct" in outer else 8)
            cases[f"list in {outer}"] = (make(WRAPPERS["list"][0](leaf)), 8 if "struct" in outer else 4)
    for name, (array, row) in cases.items():
        with pytest.raises(SchemaMismatchError, match=rf"column 'c', row {100 + row}: text with bytes that are not"):
            refuse_wrong_text(array, "c", 100)
        refuse_wrong_text(array.slice(0, row), name)
        refuse_wrong_text(array.slice(row + 1), name)


def hidden(make: Callable[[pa.Array, pa.Array], pa.Array]) -> pa.Array:
    return make(text_of_bytes(b"ok", b"\xff", b"ok"), pa.array([False, True, False]))


def test_bytes_below_null_are_no_text() -> None:
    offsets = pa.array([0, 1, 2, 3], pa.int32())
    arrays = [
        hidden(lambda texts, mask: pa.StructArray.from_arrays([texts], names=["f"], mask=mask)),
        hidden(lambda texts, mask: pa.ListArray.from_arrays(offsets, texts, mask=mask)),
        hidden(
            lambda texts, mask: pa.StructArray.from_arrays(
                [pa.ListArray.from_arrays(offsets, texts)], names=["f"], mask=mask
            )
        ),
    ]
    for array in arrays:
        refuse_wrong_text(array, "c")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary()])
def test_repeated_texts_beyond_two_gib_are_refused(kind: pa.DataType) -> None:
    """`plain_batches` halves such a batch; older releases of Arrow returned wrong texts."""
    values = pa.array(["short", None, "x" * (1 << 20)], kind)
    few = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2], pa.int32()), values)
    assert plain_array(few).to_pylist() == few.to_pylist()
    many = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(2, pa.int32()), 2048), values)
    with pytest.raises(pa.ArrowInvalid, match="bytes of text"):
        plain_array(many)


def test_batches_of_another_program_are_checked_and_get_plain_types() -> None:
    good = pa.record_batch({"v": pa.array(["a", "ä"], pa.large_string())})
    assert [batch.schema.field("v").type for batch in valid_batches([good, good])] == [pa.string()] * 2
    wrong = pa.record_batch({"v": text_of_bytes(b"ok", b"\xff")})
    with pytest.raises(SchemaMismatchError, match="column 'v', row 3: text with bytes that are not valid UTF-8"):
        list(valid_batches([good, wrong]))
