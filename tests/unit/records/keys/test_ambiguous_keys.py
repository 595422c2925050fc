"""Keys of several fields: two records never have one key, and only values that could cause it are refused."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import RecordKeyError
from hoodie.format.table.versions import TableVersion
from hoodie.records.keys.key_generator import KeyGenerator
from tests.support.key_generators import key_generator_for

TEXT, NUMBER = pa.string(), pa.int64()
LAYOUTS = {
    "two texts": {"a": TEXT, "b": TEXT},
    "text and number": {"a": TEXT, "b": NUMBER},
    "number and text": {"a": NUMBER, "b": TEXT},
    "three texts": {"a": TEXT, "b": TEXT, "c": TEXT},
    "number between texts": {"a": TEXT, "b": NUMBER, "c": TEXT},
    "numbers around a text": {"a": NUMBER, "b": TEXT, "c": NUMBER},
    "dictionary and view": {"a": pa.dictionary(pa.int32(), TEXT), "b": pa.large_string()},
}
PIECES = ["1", ",a:", ",b:", ",c:", ",", ":", "a:", "b:1", "__null__", "__empty__", ""]
TEXTS = st.none() | st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
NUMBERS = st.none() | st.integers(0, 2)


def generator(fields: list[str]) -> KeyGenerator:
    return key_generator_for(table_version=TableVersion.NINE, kind="NON_PARTITION", record_key_fields=fields)


def key_of(row: tuple[Any, ...], types: dict[str, pa.DataType], *, stored: bool) -> str | None:
    """The key of a row; None if it is refused."""
    columns = [pa.array([value], kind) for value, kind in zip(row, types.values(), strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, names=list(types))
    try:
        return str(generator(list(types)).record_keys(batch, stored=stored)[0])
    except RecordKeyError:
        return None


def rows_of(key: str, types: dict[str, pa.DataType]) -> set[tuple[Any, ...]]:
    """All rows whose key is `key`, by trying each way to cut it."""
    names = list(types)
    assert key.startswith(f"{names[0]}:")
    found: set[tuple[Any, ...]] = set()
    places = [[n for n in range(len(key)) if key.startswith(f",{name}:", n)] for name in names[1:]]
    for cuts in itertools.product(*places):
        starts = [len(names[0]) + 1, *(cut + len(name) + 2 for cut, name in zip(cuts, names[1:], strict=True))]
        ends = [*cuts, len(key)]
        if all(start <= end for start, end in zip(starts, ends, strict=True)):
            texts = [key[start:end] for start, end in zip(starts, ends, strict=True)]
            found.update(itertools.product(*map(_values, texts, types.values())))
    return found


def _values(text: str, kind: pa.DataType) -> list[Any]:
    if kind == NUMBER:
        numbers: dict[str, int | None] = {"__null__": None, "0": 0, "1": 1, "2": 2}
        return [numbers[text]] if text in numbers else []
    texts: dict[str, list[Any]] = {"__null__": [None, text], "__empty__": ["", text]}
    return texts.get(text, [text])


@given(st.data())
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_accepted_row_is_the_only_row_of_its_key(layout: str, data: st.DataObject) -> None:
    types = LAYOUTS[layout]
    row = data.draw(st.tuples(*(NUMBERS if kind == NUMBER else TEXTS for kind in types.values())))
    key, stored = key_of(row, types, stored=False), key_of(row, types, stored=True)
    if stored is None:
        assert key is None
        return
    others = rows_of(stored, types) - {row}
    assert key == stored or key is None
    if key is not None:
        assert not {other for other in others if key_of(other, types, stored=False) is not None}
    elif len(types) == 2:
        assert others, "a row is refused only if another row has its key"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("1,b:2", "3"), r"'a': the text contains ',b:'.*1 of 2 rows \(row 1 '1,b:2'\)"),
        (("1", "2,b:3"), "'b': the text contains ',b:'"),
        (("__null__", "x"), "'a': the text is what the key contains for null"),
        (("x", "__empty__"), "'b': the text is what the key contains for null"),
    ],
)
def test_the_refusal_names_field_row_and_text(row: tuple[str, str], message: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["plain, a:b", row[0]]), pa.array([None, row[1]])], names=["a", "b"])
    with pytest.raises(RecordKeyError, match=message):
        generator(["a", "b"]).record_keys(batch)


def test_one_field_and_numbers_have_no_marks() -> None:
    one = pa.RecordBatch.from_pydict({"a": ["__null__", "1,a:2", "__empty__"]})
    assert generator(["a"]).record_keys(one).to_pylist() == ["__null__", "1,a:2", "__empty__"]
    named = key_generator_for(
        table_version=TableVersion.NINE, kind="COMPLEX", record_key_fields=["a"], partition_fields=["a"]
    )
    assert named.record_keys(one).to_pylist() == ["a:__null__", "a:1,a:2", "a:__empty__"]
    one_text = pa.RecordBatch.from_pydict({"a": ["1,b:2"], "b": [3]})
    assert generator(["a", "b"]).record_keys(one_text).to_pylist() == ["a:1,b:2,b:3"]
