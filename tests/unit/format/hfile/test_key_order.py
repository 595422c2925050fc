"""Files whose keys Java sorted: by UTF-16 units, which is not the order of their bytes."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import HFileReader, hfile_to_bytes
from hoodie.format.hfile import writer as module
from hoodie.format.hfile.key_order import as_java_sorts, ascends_somehow, is_plain
from hoodie.format.hfile.trailer import CREATED
from tests.support.seeds import seeded

# Both kinds of contested characters, and what lies beside them.
LETTERS = "az\u00e9\ud7ff\ue000\uff21\uffff\U00010000\U0001f600\U0010ffff"
TEXTS = st.text(LETTERS, max_size=6)


def by_units(text: str) -> bytes:
    """What Java compares."""
    return text.encode("utf-16-be")


def by_java(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> HFileReader:
    """A file of these keys in this order, whatever it is; a value is the number of its key."""
    monkeypatch.setattr(module, "_check", lambda keys, values: None)
    values = pa.array([str(number).encode() for number in range(len(texts))], pa.binary())
    data = hfile_to_bytes(pa.array(texts), values, schema_json="{}", file_info={CREATED: bytes(8)})
    return HFileReader(data, path="java.hfile")


@given(st.lists(TEXTS))
def test_the_order_of_java(texts: list[str]) -> None:
    keys = pa.array(texts, pa.string()).cast(pa.binary())
    order = pc.sort_indices(as_java_sorts(keys)).to_pylist()
    assert [texts[place] for place in order] == sorted(texts, key=by_units)
    assert ascends_somehow(pa.array(sorted(texts, key=by_units), pa.string()).cast(pa.binary()))
    assert as_java_sorts(keys[1:]).to_pylist() == as_java_sorts(keys).to_pylist()[1:]
    if is_plain(keys):
        assert sorted(texts, key=by_units) == sorted(texts)


def keys_over_blocks(seed: int) -> list[str]:
    """Keys of all kinds, in the order of Java, over several blocks."""
    chooser = random.Random(seed)
    found = {"".join(chooser.choices(LETTERS, k=chooser.randint(1, 5))) + f"{n:06}" for n in range(12_000)}
    return sorted(found, key=by_units)


@seeded(0, 1, 2)
def test_every_key_of_a_file_by_java_is_found(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    texts = keys_over_blocks(seed)
    assert texts != sorted(texts)
    reader = by_java(texts, monkeypatch)
    assert reader.block_count > 3
    keys, values = reader.entries()
    assert keys.to_pylist() == sorted(text.encode() for text in texts)
    number_of = {text: str(number).encode() for number, text in enumerate(texts)}
    assert dict(zip(keys.to_pylist(), values.to_pylist(), strict=True)) == {
        text.encode(): value for text, value in number_of.items()
    }
    chooser = random.Random(seed)
    for wanted in [*([text] for text in chooser.sample(texts, 40)), chooser.sample(texts, 500), ["absent", "a\uff21"]]:
        assert reader.get_many(pa.array(wanted)).to_pylist() == [number_of.get(text) for text in wanted]
    for start, stop in (("a", "b"), ("\uff21", "\uff22"), ("\U0001f600", "\U0001f601"), ("zz", "z{")):
        found = reader.get_range(start.encode(), stop.encode())[0].to_pylist()
        assert found == sorted(text.encode() for text in texts if text.startswith(start))


def test_keys_in_no_order_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["\U0001f600", "\uff21", "b", "a"]
    reader = by_java(texts, monkeypatch)
    for read in (reader.entries, lambda: reader.get_many(pa.array(["\uff21"]))):
        with pytest.raises(CorruptFileError, match="ascend"):
            read()
