"""Which slices of a file group go: rules for single cases, and what holds for all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hoodie.files.slices import BaseFile, FileSlice
from hoodie.services.cleaning.partitions import CleanOptions, Policy
from hoodie.services.cleaning.plan import Needed, obsolete_slices

COMMITS = CleanOptions()
TIMES = st.lists(st.integers(1, 20), min_size=1, max_size=8, unique=True)


def at(number: int) -> str:
    return f"2026010100000{number:04}"


def history_of(*times: int) -> list[FileSlice]:
    """A file group with a base file at each time."""
    return [
        FileSlice("p", "f", at(time), BaseFile("p", f"f_0-0-0_{at(time)}.parquet", "f", at(time), 1))
        for time in sorted(times, reverse=True)
    ]


def gone(history: list[FileSlice], options: CleanOptions, earliest: int, needed: Needed | None = None) -> list[int]:
    found = obsolete_slices([history], options, at(earliest), needed or Needed())
    return sorted(int(slice_.base_instant_time[-4:]) for slice_ in found)


def test_the_newest_slice_before_the_window_stays() -> None:
    history = history_of(1, 3, 5, 9)
    assert gone(history, COMMITS, 6) == [1, 3]
    assert gone(history, COMMITS, 5) == [1]
    assert gone(history, COMMITS, 1) == []
    assert gone(history, COMMITS, 20) == [1, 3, 5]


def test_what_is_needed_stays() -> None:
    history, group = history_of(1, 3, 5, 9), ("p", "f")
    saved = Needed(savepointed={"p": {f"f_0-0-0_{at(3)}.parquet"}})
    assert gone(history, COMMITS, 20, saved) == [1, 5]
    assert gone(history, COMMITS, 20, Needed(compacting={group: at(3)})) == [1]
    replaced = Needed(replaced={group: at(10)})
    assert gone(history, COMMITS, 10, replaced) == []
    assert gone(history, COMMITS, 11, replaced) == [1, 3, 5, 9]


def test_versions() -> None:
    history, group = history_of(1, 3, 5, 9), ("p", "f")
    two = CleanOptions(policy=Policy.VERSIONS, retained=2)
    assert gone(history, two, 0) == [1, 3]
    # The slice of a pending compaction is one of the two.
    assert gone(history, two, 0, Needed(compacting={group: at(9)})) == [1, 3]
    assert gone(history, two, 0, Needed(clustering={group})) == []
    assert gone(history, two, 0, Needed(replaced={group: at(2)})) == [1, 3, 5, 9]


@given(times=TIMES, earliest=st.integers(1, 21), as_of=st.integers(1, 30))
def test_every_snapshot_of_the_window_keeps_its_slice(times: list[int], earliest: int, as_of: int) -> None:
    """Also that of a reader who began just before the window."""
    doomed = gone(history_of(*times), COMMITS, earliest)
    for time in (max(as_of, earliest), earliest - 1):
        read = max((found for found in times if found <= time), default=None)
        assert read not in doomed
    assert max(times) not in doomed


@given(times=TIMES, retained=st.integers(1, 5))
def test_as_many_versions_stay(times: list[int], retained: int) -> None:
    doomed = gone(history_of(*times), CleanOptions(policy=Policy.VERSIONS, retained=retained), 0)
    assert sorted({*times} - {*doomed}) == sorted(times)[-retained:]
