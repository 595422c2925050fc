"""The plan of comparisons: each file meets exactly the keys in its range, and no task does more than the bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.index.bloom.comparisons import FILE_COST, Comparisons, KeySequence, keys_in_ranges, tasks_of
from hoodie.index.key_search import KeyRange

KEYS = st.text("abé日\ue000😀", min_size=1, max_size=3)


@given(st.lists(st.tuples(KEYS, KEYS) | st.none(), max_size=6), st.lists(KEYS, min_size=1, max_size=20))
def test_a_file_meets_the_keys_in_its_range(bounds: list[tuple[str, str] | None], keys: list[str]) -> None:
    """A file whose bounds the JVM orders otherwise meets all keys."""
    keys.sort(key=str.encode)
    ranges = [KeyRange() if found is None else KeyRange.of(*sorted(found, key=str.encode)) for found in bounds]
    batch = pa.record_batch(
        {
            "file": pa.array([number * 10 for number in range(len(ranges))], pa.int64()),
            "low": pa.array([found.low for found in ranges], pa.string()),
            "high": pa.array([found.high for found in ranges], pa.string()),
        }
    )
    files, first, stop = keys_in_ranges(pa.array(keys), batch)
    met = {(file, key) for file, start, end in zip(files, first, stop, strict=True) for key in range(start, end)}
    assert met == {
        (number * 10, place)
        for number, found in enumerate(ranges)
        for place, key in enumerate(keys)
        if not found.excludes(key, key)
    }


def met(*found: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> Comparisons:
    """Comparisons of sequences: numbers of files, first key and end of each."""
    return Comparisons.of(
        [
            KeySequence(path="", first_block=0, files=np.array(files), first=np.array(first), stop=np.array(stop))
            for files, first, stop in found
        ]
    )


def whole(tasks: Sequence[Comparisons]) -> set[tuple[int, int, int, int]]:
    """All comparisons, with neighbours joined."""
    joined: dict[tuple[int, int], list[int]] = {}
    for task in tasks:
        for file, sequence, first, stop in zip(task.file, task.sequence, task.first, task.stop, strict=True):
            start, end = joined.setdefault((int(file), int(sequence)), [int(first), int(first)])
            assert end == first
            joined[int(file), int(sequence)] = [start, int(stop)]
    return {(*place, start, end) for place, (start, end) in joined.items()}


@pytest.mark.parametrize(("bound", "parallelism"), [(10_000_000, 4), (500_000, 8), (1, 1)])
def test_no_task_does_more_than_the_bound_however_skewed_the_keys_are(bound: int, parallelism: int) -> None:
    """One file meets a million keys of each of two sequences, a partition of ten files too; 100,000 files meet one."""
    scale = 1 if bound > 1 else 10_000
    keys, many = 1_000_000 // scale, 100_000 // scale
    hot = [many, *range(many + 1, many + 11)]
    found = met((hot, [0] * 11, [keys] * 11), ([many], [5], [keys]), (range(many), [0] * many, [1] * many))
    tasks = tasks_of(found, bound=bound, parallelism=parallelism)
    assert max(int((task.stop - task.first).sum()) for task in tasks) <= bound
    if bound > FILE_COST:
        assert max(len(np.unique(task.file)) for task in tasks) <= bound // FILE_COST
    assert whole(tasks) == {
        *((file, 0, 0, keys) for file in hot),
        (many, 1, 5, keys),
        *((file, 2, 0, 1) for file in range(many)),
    }


def test_comparisons_beyond_the_bound_are_shared_equally() -> None:
    found = met((range(50), [0] * 50, [9_830_400] * 50))
    tasks = tasks_of(found, bound=10_000_000, parallelism=2)
    rows = [int((task.stop - task.first).sum()) for task in tasks]
    assert sum(rows) == 50 * 9_830_400
    assert max(rows) <= 10_000_000 < 2 * min(rows[:-1])


def test_few_comparisons_are_one_task() -> None:
    assert len(tasks_of(met((range(10), [0] * 10, [100] * 10)), bound=10_000_000, parallelism=8)) == 1
    assert tasks_of(met(), bound=1, parallelism=1) == []
