"""Incremental pulls of version 6 tables, which know no completion times: spans of requested times, as in the JVM."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import UnsupportedError

Copied = tuple[hoodie.Table, list[str]]


def _copied(source: Path, target: Path, time_of: Callable[[int], int] = lambda _: 1_600_000_000) -> Copied:
    """A copy of a table whose commit number n has the change time `time_of(n)`, and the times of its commits."""
    shutil.copytree(source, target)
    commits = sorted((target / ".hoodie").glob("[0-9]*commit"))
    for number, commit in enumerate(commits):
        os.utime(commit, (time_of(number), time_of(number)))
    return hoodie.open(target, spark=False), [commit.name.partition(".")[0] for commit in commits]


def _commits(table: hoodie.Table, since: str | None, until: str | None) -> set[str]:
    return set(table.changes(since=since, until=until)["_hoodie_commit_time"].to_pylist())


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    "time_of", [lambda _: 1_600_000_000, lambda number: 1_700_000_000 - number], ids=["same", "reversed"]
)
def test_pulls_do_not_depend_on_file_times(
    golden_tables: Path, tmp_path: Path, kind: str, time_of: Callable[[int], int]
) -> None:
    source = golden_tables / f"v6_{kind}"
    table, times = _copied(source, tmp_path / "copy", time_of)
    assert len(times) >= 3
    original = hoodie.open(source, spark=False)
    spans = [(times[0], None), (times[1], None), (times[0], times[1]), (None, times[1]), (times[-1], None)]
    for since, until in spans:
        found = table.changes(since=since, until=until)
        expected = original.to_arrow(as_of=until).to_pylist()
        expected = [row for row in expected if row["_hoodie_commit_time"] > (since or "")]
        assert sorted(found.to_pylist(), key=repr) == sorted(expected, key=repr), (since, until)
    assert table.changes(since=times[0]).num_rows > 0
    assert table.changes(since=times[-1]).num_rows == 0


def test_bounds_between_instants(golden_tables: Path, tmp_path: Path) -> None:
    table, times = _copied(golden_tables / "v6_cow", tmp_path / "copy")
    before = str(int(times[1]) - 1)
    assert _commits(table, before, times[1]) == {times[1]}
    assert _commits(table, before, before) == set()


@pytest.mark.parametrize("name", ["{}.deltacommit.inflight", "{}.inflight", "{}.commit.requested"])
def test_a_pending_write_before_a_commit_of_the_span_is_an_error(
    golden_tables: Path, tmp_path: Path, name: str
) -> None:
    table, times = _copied(golden_tables / "v6_cow", tmp_path / "copy")
    pending = str(int(times[-1]) - 1)
    (tmp_path / "copy" / ".hoodie" / name.format(pending)).touch()
    for since in (None, times[0], times[-2]):
        with pytest.raises(UnsupportedError, match=f"{pending}.*is pending, and the commit {times[-1]}"):
            table.changes(since=since)
    assert _commits(table, times[0], str(int(pending) - 1)) <= set(times[1:-1])
    assert table.changes(since=times[-1]).num_rows == 0
