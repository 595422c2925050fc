"""One file of a table is damaged: reads and writes give right rows or an error of ours, in bounded time and memory.

What is right depends on the file. Base files and HFiles have checksums: their damage never changes a row. Text in a
file without a checksum may be changed unnoticed: then only crashes, hangs, foreign errors and wild allocations are
wrong. tests/support/damaged_tables.py has the tables and the damage.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie.storage import MemoryStore
from tests.support.damage_process import is_noticed, try_table
from tests.support.damaged_tables import TABLE_NAMES, Damage, damaged, sample_table
from tests.support.seeds import seeded

ROOT = Path(__file__).parents[2]
CASES = 40


@pytest.mark.later
@pytest.mark.timeout(900)
@seeded(1)
def test_a_damaged_file_gives_right_rows_or_an_error_of_ours(seed: int) -> None:
    """The process ends if it takes too much time or memory; its last line then is the damage that did it."""
    wanted = [str(seed * 1000 + number) for number in range(CASES)]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.damage_process", *wanted],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, f"{lines[-1:]} ended the process: {ended.stderr[-5000:]}"
    verdicts = dict(zip(lines[::2], map(json.loads, lines[1::2]), strict=True))
    assert len(verdicts) == CASES
    wrong = "\n\n".join(f"{damage}\n{problem}" for damage, problem in verdicts.items() if problem)
    assert not wrong, f"python -m tests.support.damage_process SEED repeats one of:\n{wrong}"


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_the_tables_have_every_kind_of_file(name: str) -> None:
    kinds = "\n".join(sample_table(name).files())
    expected = {
        "copy on write": ("lock", ".heartbeat", ".temp", "_version_", "manifest_N", "replacecommit", ".hfile", "N.log"),
        "merge on read, avro": ("compaction.requested", "compaction.inflight", "P/.U_N.log", "index.json"),
        "merge on read, parquet": ("P/.U_N.log", "metadata/files"),
        "partitioned index": ("record-index-city", ".heartbeat"),
        "served": (
            "timeline/N.clean.requested",
            "timeline/N.clean.inflight",
            "timeline/N_N.clean\n",
            "timeline/history/N_N_N.parquet",
            "timeline/history/manifest_N",
            "timeline/history/_version_",
            "timeline/N_N.replacecommit",
            "timeline/N_N.savepoint",
            "column_stats/",
            "partition_stats/",
            "table_lock.json",
        ),
        "restored": ("N.restore.requested", "N_N.restore", "N_N.rollback", "N.clustering.requested", "column_stats/.c"),
    }
    for part in (*expected.get(name, ()), "hoodie.properties", ".hoodie_partition_metadata", ".parquet"):
        assert part in kinds, kinds


def test_the_same_seed_is_the_same_damage() -> None:
    first, second = damaged(7), damaged(7)
    assert str(first) == str(second)
    changed = [info.path for info in first.store.list("", recursive=True) if _content(first, info.path)]
    assert changed in ([], [first.path])


def _content(found: Damage, path: str) -> bool:
    old, new = found.table.store.uri("").encode(), found.store.uri("").encode()
    return found.store.read(path) != found.table.store.read(path).replace(old, new)


def test_wrong_rows_and_foreign_errors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check fails when it should: rows of another table are wrong, and so is an error that is not ours."""
    sample = sample_table("copy on write")
    base = next(info.path for info in sample.store.list("", recursive=True) if info.path.endswith(".parquet"))
    other = Damage(sample, sample_table("partitioned index").store, "base file", base, "another table")
    assert is_noticed(other)
    assert "wrong rows" in str(try_table(other))

    def fail(self: MemoryStore, path: str) -> bytes:
        raise KeyError(path)

    monkeypatch.setattr(MemoryStore, "read", fail)
    assert "KeyError" in str(try_table(other))
