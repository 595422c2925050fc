"""The registry of hash functions: who may be asked by name, and that `record_index` takes the JVM's only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError
from hoodie.format.hashes import key_hashes
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.hashes.key_hashes import key_hash, record_index_hash, register

KEYS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=30)
COUNTS = st.integers(1, 10_000)


def by_length(keys: pa.StringArray, count: int) -> npt.NDArray[np.int32]:
    return np.asarray([len(key) % count for key in keys.to_pylist()], np.int32)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of the test's own."""
    monkeypatch.setattr(key_hashes, "_HASHES", dict(key_hashes._HASHES))


@pytest.mark.parametrize("name", ["java", "murmur"])
@given(texts=KEYS, count=COUNTS)
def test_equal_keys_get_equal_buckets_wherever_they_stand(name: str, texts: list[str], count: int) -> None:
    buckets = key_hash(name)(pa.array(texts, pa.string()), count).tolist()
    assert all(0 <= bucket < count for bucket in buckets)
    alone = [key_hash(name)(pa.array(["x", text, "yy"]).slice(1, 1), count).tolist() for text in texts]
    assert [[bucket] for bucket in buckets] == alone


@pytest.mark.parametrize("name", ["java", "murmur"])
def test_similar_keys_spread(name: str) -> None:
    keys = pa.array([f"trip-{number:08}" for number in range(20_000)])
    counts = np.bincount(key_hash(name)(keys, 10), minlength=10)
    assert counts.min() > 1_000
    assert counts.max() < 3_000


def test_java_is_the_mapping_of_the_metadata_table() -> None:
    assert key_hash("java") is file_group_index
    assert record_index_hash("java") is file_group_index


@pytest.mark.parametrize("name", ["murmur", "by_length"])
def test_record_index_takes_no_other(name: str) -> None:
    register("by_length", by_length)
    with pytest.raises(InvalidConfigError, match=rf"'{name}' cannot serve record_index: .* would miss the keys"):
        record_index_hash(name)


def test_a_function_of_ones_own_is_found_by_its_name() -> None:
    register("by_length", by_length)
    register("by_length", by_length)
    assert key_hash("by_length")(pa.array(["", "a", "abc"]), 2).tolist() == [0, 1, 1]


def test_a_name_means_one_function_for_good() -> None:
    for name in ("java", "murmur"):
        with pytest.raises(InvalidConfigError, match=f"there is a hash function '{name}' already"):
            register(name, by_length)
    assert key_hash("java") is file_group_index


@pytest.mark.parametrize("name", ["", "two words", "hoodie.x"])
def test_names_are_identifiers(name: str) -> None:
    with pytest.raises(InvalidConfigError, match="must be an identifier"):
        register(name, by_length)


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    for ask in (key_hash, record_index_hash):
        with pytest.raises(InvalidConfigError, match="no hash function 'jawa'; there are java, murmur"):
            ask("jawa")
