"""Keys found among known ones, by Arrow's hash table and by sorted hashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.records.keys import key_lookup
from hoodie.records.keys.key_lookup import KeyLookup
from tests.support.seeds import examples

# Both pairs have equal Java hashes and lengths, and so equal spread hashes.
KEYS = st.sampled_from(["", "a", "AaAa", "AaBB", "BBAa", "BBBB", "key-1", "ключ"])


@pytest.mark.parametrize("small", [0, 1000])
@settings(max_examples=examples(60))
@given(known=st.lists(KEYS, unique=True), batches=st.lists(st.lists(KEYS), max_size=3))
def test_what_a_dictionary_finds(small: int, known: list[str], batches: list[list[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_lookup, "_SMALL", small)
        lookup = KeyLookup(pa.array(known, pa.string()))
    asked = [key for batch in batches for key in batch]
    rows, places = lookup.find(pa.chunked_array(batches, pa.string()))
    assert rows.tolist() == [row for row, key in enumerate(asked) if key in known]
    assert [known[place] for place in places] == [key for key in asked if key in known]
    assert rows.dtype == places.dtype == np.int64
