"""hudi-rs reads a table in every state of its compactions: logs, log-compacted, pending, and compacted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import read_with_hudi_rs

Rows = dict[str, tuple[int, str]]


def trips(rows: Rows) -> pa.Table:
    return pa.table(
        {"id": list(rows), "ts": [ts for ts, _ in rows.values()], "city": [city for _, city in rows.values()]}
    )


@pytest.mark.parametrize("index", ["simple", "record"])
def test_every_state(tmp_path: Path, index: str) -> None:
    rows: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
    table = hoodie.create(
        tmp_path / "t", trips(rows).schema, record_key="id", partition_by="city", ordering="ts", type="merge_on_read",
        index=index, spark=False,
    )  # fmt: skip

    def check() -> None:
        found = read_with_hudi_rs(tmp_path / "t").select(["id", "ts", "city"]).to_pylist()
        assert {row["id"]: (row["ts"], row["city"]) for row in found} == rows
        assert len(found) == len(rows)

    table.upsert(trips(rows))
    for number in range(2, 6):
        table.upsert(trips({"a": (number, "sf"), "c": (7 - number, "nyc")}))
    table.delete(pa.table({"id": ["b"], "city": ["sf"]}))
    rows = {"a": (5, "sf"), "c": (5, "nyc")}
    check()
    assert table.compact(table.schedule_log_compaction(2)).operation == "log compaction"
    check()
    table.upsert(trips({"a": (9, "sf"), "d": (9, "nyc")}))
    rows |= {"a": (9, "sf"), "d": (9, "nyc")}
    check()
    assert table.schedule_compaction()
    table.upsert(trips({"a": (10, "sf")}))
    rows |= {"a": (10, "sf")}
    check()
    assert table.compact().operation == "compaction"
    check()
