"""`String.hashCode` of columns against its definition; file groups of keys in the record index and the bucket index."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.buckets import bucket_of_keys
from hoodie.format.hashes.java_hash import file_group_index, java_hash


def defined(text: str) -> int:
    """Java's definition, unit by unit."""
    units = text.encode("utf-16-le")
    result = 0
    for place in range(0, len(units), 2):
        result = (31 * result + int.from_bytes(units[place : place + 2], "little")) & 0xFFFFFFFF
    return result - (1 << 32) if result >= 1 << 31 else result


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=20)


@given(TEXTS, st.integers(0, 5))
def test_it_is_javas_hash_of_slices_too(texts: list[str], start: int) -> None:
    keys = pa.array(texts, pa.string()).slice(start)
    assert java_hash(keys).tolist() == [defined(text) for text in texts[start:]]


def test_long_columns_are_hashed_in_chunks() -> None:
    texts = [f"key-{number}" * (number % 4) for number in range(50)] + ["😀" * 9]
    assert java_hash(pa.array(texts), chunk_bytes=10).tolist() == [defined(text) for text in texts]


def test_the_smallest_integer_has_a_group_too() -> None:
    smallest = "polygenelubricants"
    assert java_hash(pa.array([smallest])).tolist() == [-(1 << 31)]
    assert file_group_index(pa.array([smallest]), 10).tolist() == [(1 << 31) % 10]


def test_groups_of_the_format_page() -> None:
    assert file_group_index(pa.array(["key-000000", "key-000349", "TXN-001"]), 10).tolist() == [4, 0, 8]


def test_similar_keys_spread_over_the_groups() -> None:
    keys = pa.array([f"trip-{number:08}" for number in range(20_000)])
    counts = np.bincount(file_group_index(keys, 10), minlength=10)
    assert counts.min() > 1_000
    assert counts.max() < 3_000


# The bucket of a record key, beside the parser of the JVM written out for one key

VALUES = ("__null__", "__empty__", "x", "é漢😀", "a,b", "2014-10-22 13:50:42", "q,r:s", ":", ",", "")
FIELDS = (["id"], ["city"], ["id", "city"], ["é"], ["other"], ["city", "é"])


def _values(key: str, fields: list[str]) -> list[str | None]:
    """`KeyGenUtils.extractRecordKeysByFields`, with an end where the JVM has none."""
    if "," not in key or ":" not in key:
        return [key]
    values: list[str | None] = []
    place = 0
    while place < len(key):
        colon = key.index(":", place)
        later = key.find(":", colon + 1)
        comma = key.rfind(",", 0, later + 1)
        while comma < colon and later > 0:
            later = key.find(":", later + 1)
            comma = key.rfind(",", 0, later + 1)
        end = comma if later > 0 else len(key)
        if key[place:colon] in fields:
            value = key[colon + 1 : end]
            values.append({"__null__": None, "__empty__": ""}.get(value, value))
        place = end + 1
    return values or [key]


def _bucket(key: str, fields: list[str], count: int) -> int:
    found = 1
    for value in _values(key, fields):
        found = (31 * found + (0 if value is None else defined(value))) & 0xFFFFFFFF
    return (found & 0x7FFFFFFF) % count


def _keys(rng: random.Random) -> list[str]:
    def value() -> str:
        return rng.choice([*VALUES, "".join(rng.choices("ab,:é😀", k=rng.randrange(8)))])

    forms = ("{}", "id:{},city:{}", "id:{},city:{},é:{}")
    return [rng.choice(forms).format(value(), value(), value()) for _ in range(3000)]


@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_the_bucket_of_any_text(fields: list[str]) -> None:
    keys = _keys(random.Random(1))
    for count in (1, 7, 256):
        assert bucket_of_keys(pa.array(keys), fields, count).tolist() == [_bucket(key, fields, count) for key in keys]


def test_slices_and_many_keys() -> None:
    """The hash is computed in pieces of a megabyte; a slice has an offset."""
    keys = pa.array([f"id:{n},city:{n % 7:>40}" for n in range(60_000)])
    found = bucket_of_keys(keys, ["id"], 16).tolist()
    assert found == [_bucket(str(n), ["id"], 16) for n in range(60_000)]
    assert bucket_of_keys(keys[17:40], ["id"], 16).tolist() == found[17:40]
    assert bucket_of_keys(keys[:0], ["id"], 16).tolist() == []
