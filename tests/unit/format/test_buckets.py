"""The bucket of a record key, beside the parser of the JVM written out for one key."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from hoodie.format.buckets import bucket_of_keys
from hoodie.format.filenames import bucket_of_file_id

VALUES = ("__null__", "__empty__", "x", "é漢😀", "a,b", "2014-10-22 13:50:42", "q,r:s", ":", ",", "")
FIELDS = (["id"], ["city"], ["id", "city"], ["é"], ["other"], ["city", "é"])


def _java_hash(text: str) -> int:
    units = text.encode("utf-16-be")
    found = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8) + low) & 0xFFFFFFFF
    return found


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
        found = (31 * found + (0 if value is None else _java_hash(value))) & 0xFFFFFFFF
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


@pytest.mark.parametrize("file_id", ["6f1c2f9b-4a5f", "0000001-4a5f", "000000012-4a5f", ""])
def test_file_ids_without_a_bucket(file_id: str) -> None:
    assert bucket_of_file_id(file_id) is None
