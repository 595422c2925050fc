"""Columns that allow no null, over files whose columns are optional: JVM Hudi reads, merges and compacts them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import Jvm
from tests.support.rows import assert_same_rows

INNER = pa.field("x", pa.int64(), nullable=False)
FIELDS = [("id", pa.string()), ("n", pa.int64()), ("s", pa.struct([("x", pa.int64())]))]
REQUIRED = pa.schema([pa.field("id", pa.string(), False), pa.field("n", pa.int64(), False), ("s", pa.struct([INNER]))])
DECLARED = pa.schema(FIELDS)


def _rows(*rows: tuple[str, int | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "n": n, "s": {"x": 1}} for key, n in rows], DECLARED)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_jvm_continues_optional_files_of_a_required_column(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "required"
    compacts = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    compacts = compacts if table_type == "MERGE_ON_READ" else {}
    table = hoodie.create(path, REQUIRED, record_key="id", type=table_type, spark=False)
    table.bulk_insert(_rows(("a", 1), ("b", 2), ("c", 3)).to_reader())  # its files are optional, the table is not
    table.upsert(_rows(("b", 20)).to_reader())
    assert table.schema.equals(REQUIRED)

    def agree(*expected: tuple[str, int | None]) -> None:
        ours = hoodie.open(path, spark=False).to_arrow(DECLARED.names)
        assert_same_rows(ours, _rows(*expected), key="id")
        assert_same_rows(jvm.read(path, DECLARED.names), _rows(*expected), key="id")

    agree(("a", 1), ("b", 20), ("c", 3))
    jvm.write(
        _rows(("a", 10), ("d", 4)), path, table_name="required", key="id", table_type=table_type, options=compacts,
    )  # fmt: skip
    agree(("a", 10), ("b", 20), ("c", 3), ("d", 4))
    table.upsert(_rows(("c", None)).to_reader())
    agree(("a", 10), ("b", 20), ("c", None), ("d", 4))
