"""Late rows and late deletes in tables of version 6: which versions count for JVM Hudi 0.15.0.

Docs: docs/format/table.md §6.6. JVM Hudi 1.0 and later choose otherwise in the same tables.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.table import Table
from tests.interop.judges import Jvm
from tests.support.rows import assert_same_rows
from tests.support.seeds import seeded

RELEASES = ("0.15.0",)
MODEL = "org.apache.hudi.common.model."
WRITTEN = ("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload", "AWSDmsAvroPayload")
READ = ("PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload")
IDS = range(60)
ORDERINGS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "string": (pa.string(), "{:03}".format),
    "date": (pa.date32(), lambda number: date(2024, 1, number)),
    "timestamp": (pa.timestamp("us", "UTC"), lambda number: datetime(2024, 1, number, tzinfo=UTC)),
    "decimal": (pa.decimal128(10, 2), Decimal),
    "double": (pa.float64(), float),
    "int": (pa.int32(), int),
}


class Turns:
    """A table that both write; the JVM, with these options, and we."""

    def __init__(
        self,
        older: Jvm,
        path: Path,
        payload: str,
        ordering: pa.DataType,
        chooser: random.Random,
        table_type: str = "MERGE_ON_READ",
    ) -> None:
        self.older, self.path, self.chooser, self.table_type = older, path, chooser, table_type
        self.mark = ("Op", "U", "D") if payload.startswith("AWS") else ("_hoodie_is_deleted", False, True)
        marker = pa.field(self.mark[0], pa.string() if self.mark[0] == "Op" else pa.bool_())
        columns = [("id", pa.int32()), ("ts", ordering), ("v", pa.string()), ("w", pa.string())]
        self.schema = pa.schema([*(pa.field(*column) for column in columns), marker])
        self.options = {"hoodie.datasource.write.payload.class": MODEL + payload, "hoodie.compact.inline": "false"}

    @property
    def table(self) -> Table:
        """A new handle of ours."""
        return hoodie.open(self.path, spark=False)

    def data(self, ids: list[int], step: int, order: Callable[[int], Any], *, share_of_deletes: float) -> pa.Table:
        """New versions of records with random ordering values; one in three texts is null."""
        rows = [
            (
                key,
                order(self.chooser.randint(1, 9)),
                *(None if self.chooser.random() < 0.3 else f"{name}{step}" for name in "vw"),
                self.mark[2 if self.chooser.random() < share_of_deletes else 1],
            )
            for key in ids
        ]
        return pa.Table.from_pylist([dict(zip(self.schema.names, row, strict=True)) for row in rows], self.schema)

    def by_jvm(self, data: pa.Table, operation: str = "upsert") -> None:
        self.older.write(
            data, self.path, table_name="late", key="id", ordering="ts", table_type=self.table_type,
            operation=operation, options=self.options,
        )  # fmt: skip

    def check(self) -> None:
        """Both read the same; a compaction by each, in a copy, changes nothing."""
        theirs = self.older.read(self.path)
        assert_same_rows(self.table.to_arrow(), theirs, meta=True)
        copy = self.path.parent / f"{self.path.name}-compacted"
        shutil.copytree(self.path, copy)
        compacted = hoodie.open(copy, spark=False)
        compacted.schedule_compaction()
        compacted.compact()
        assert_same_rows(self.older.read(copy), theirs)
        shutil.rmtree(copy)


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("payload", WRITTEN + READ)
@seeded(5)
def test_payloads_in_turns(older: Jvm, tmp_path: Path, payload: str, seed: int) -> None:
    chooser = random.Random(seed)
    turns = Turns(older, tmp_path / "late", payload, pa.int64(), chooser)

    def some(step: int, count: int = 25) -> pa.Table:
        return turns.data(chooser.sample(IDS, count), step, int, share_of_deletes=0.25)

    turns.by_jvm(turns.data(list(IDS[::2]), 0, int, share_of_deletes=0), "insert")
    ours = 0
    for step in range(1, 7):
        if payload in WRITTEN and chooser.random() < 0.5:
            turns.table.upsert(pa.concat_tables([some(step), some(step)]) if step > 3 else some(step))
            ours += 1
        else:
            turns.by_jvm(some(step))
        if step in (2, 4):
            turns.by_jvm(turns.data(chooser.sample(IDS, 5), step, int, share_of_deletes=0), "delete")
    turns.check()
    assert ours or payload in READ
    older.compact(turns.path)
    assert_same_rows(turns.table.to_arrow(), older.read(turns.path), meta=True)


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("payload", WRITTEN + READ)
@seeded(7)
def test_copy_on_write_tables_store_no_payload(older: Jvm, tmp_path: Path, payload: str, seed: int) -> None:
    """The options of each write name it. The JVM alone writes a twin, from the same data."""
    chooser = random.Random(seed)
    turns, twin = (
        Turns(older, tmp_path / name, payload, pa.int64(), chooser, "COPY_ON_WRITE") for name in ("turns", "twin")
    )
    for step in range(6):
        data = turns.data(chooser.choices(IDS, k=40), step, int, share_of_deletes=0.2 if step else 0)
        twin.by_jvm(data)
        if step % 2:
            turns.table.upsert(data, properties=turns.options)
        else:
            turns.by_jvm(data)
        assert turns.table.view().config.payload_class is None
        assert_same_rows(turns.table.to_arrow(), older.read(twin.path))
    assert_same_rows(older.read(turns.path), older.read(twin.path))


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("name", ORDERINGS)
def test_types_of_the_ordering_column(older: Jvm, tmp_path: Path, name: str) -> None:
    """A late delete loses against a logged row only if Java compares both values: not strings, dates and decimals."""
    ordering, order = ORDERINGS[name]
    for payload in WRITTEN[:2]:
        for is_ours in (False, True):
            turns = Turns(older, tmp_path / f"{payload}{is_ours}", payload, ordering, random.Random(3))
            upsert: Callable[[pa.Table], object] = turns.by_jvm
            turns.by_jvm(turns.data(list(IDS[::2]), 0, order, share_of_deletes=0), "insert")
            for step in (1, 2, 3):
                upsert(turns.data(list(IDS[::2]), step, order, share_of_deletes=0.3))
                upsert = turns.table.upsert if is_ours else turns.by_jvm
            turns.check()
