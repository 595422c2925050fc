"""Merge-on-read tables of versions 6 and 8, and logs of every kind, made by the JVM: we read what the JVM reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("step", pa.int32()), ("ord", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
PLAIN = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
LOG_COMPACTION = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "2",
}

Change = tuple[str, int, bool]
"""Record key, ordering value, whether the row says that it is deleted."""


class Table:
    """A table of the JVM without partitions; each write is a step."""

    def __init__(self, jvm: Jvm, path: Path, version: int = 9) -> None:
        self.jvm = jvm
        self.path = path
        self.version = version
        self._step = 0

    def write(self, *changes: Change, operation: str = "upsert", options: dict[str, str] | None = None) -> None:
        rows = [
            {"id": key, "step": self._step, "ord": ordering, "_hoodie_is_deleted": is_deleted}
            for key, ordering, is_deleted in changes
        ]
        self._step += 1
        self.jvm.write(
            pa.Table.from_pylist(rows, schema=SCHEMA), self.path, table_name="steps", key="id", ordering="ord",
            operation=operation, table_type="MERGE_ON_READ", table_version=self.version,
            options={**PLAIN, **(options or {})},
        )  # fmt: skip

    def check(self) -> dict[str, int]:
        """We and hudi-rs read what the JVM reads; steps by key."""
        table = hoodie.open(self.path)
        rows = self.jvm.read(self.path)
        assert_same_rows(table.to_arrow(), rows, key="id", meta=True)
        assert_same_rows(read_with_hudi_rs(self.path), rows, key="id", meta=True)
        return dict(zip(rows["id"].to_pylist(), rows["step"].to_pylist(), strict=True))

    def check_past(self) -> None:
        """The same as of some earlier writes, and base files alone."""
        table = hoodie.open(self.path)
        assert_same_rows(table.to_arrow(view="read_optimized"), self.jvm.read_optimized(self.path), key="id", meta=True)
        for instant in table.timeline.writes().completed().instants[-2::-3]:
            then = self.jvm.read(self.path, options={"as.of.instant": instant.requested_time})
            assert_same_rows(table.to_arrow(as_of=instant.requested_time), then, key="id", meta=True)


@pytest.mark.parametrize("version", [6, 8])
def test_a_table_of_an_older_version(jvm: Jvm, tmp_path: Path, version: int) -> None:
    """With a delta commit that was taken back between others, and deltas after a compaction."""
    table = Table(jvm, tmp_path / "steps", version)
    table.write(*((key, 20, False) for key in "abcdefgh"))
    table.write(("a", 21, False), ("b", 30, True), ("c", 10, False))
    table.write(("a", 99, False), ("d", 99, True), ("e", 99, False))
    taken_back = jvm.timeline(table.path)[-1].requested_time
    jvm.rollback(table.path, taken_back, table_name="steps", table_version=version)
    table.write(("f", 21, False), ("a", 20, False), ("g", 5, True))
    table.write(("h", 0, False), operation="delete")
    before = {"a": 1, "c": 0, "d": 0, "e": 0, "f": 3, "g": 0}
    assert table.check() == before
    table.write(
        ("a", 30, False), options={"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    )
    table.write(("c", 30, False), ("h", 1, False), ("new", 1, False))
    assert table.check() == before | {"a": 5, "c": 6, "h": 6, "new": 6}
    table.check_past()


def test_blocks_of_other_kinds(jvm: Jvm, tmp_path: Path) -> None:
    """Parquet beside Avro, and blocks that stand for those of earlier commits, twice."""
    table = Table(jvm, tmp_path / "steps")
    table.write(*((key, 20, False) for key in "abcdefgh"))
    table.write(("a", 21, False), ("b", 30, True), ("h", 5, True))
    table.write(("c", 30, False), ("a", 22, False), options={"hoodie.logfile.data.block.format": "parquet"})
    table.write(("d", 30, False), ("b", 29, False), ("e", 30, True), options=LOG_COMPACTION)
    table.check()
    table.write(("a", 23, False), ("f", 0, False))
    table.write(("g", 30, True), ("h", 30, False), options=LOG_COMPACTION)
    assert table.check() == {"a": 4, "c": 2, "d": 3, "f": 0, "h": 5}
    names = {instant.action.value for instant in jvm.timeline(table.path)}
    assert names == {"deltacommit"}
    assert len(list((table.path / ".hoodie/timeline").glob("2*.logcompaction.requested"))) == 2
    table.write(("f", 20, False))
    assert table.check() == {"a": 4, "c": 2, "d": 3, "f": 6, "h": 5}
