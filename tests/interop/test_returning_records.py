"""A record that comes back with a lower ordering value while a log deletes it, with the simple index.

Its row is logged in its file group, where the merge shows the deleted base row; the result says so. In another file
group the row would be right until the JVM's next upsert, which finds the key in two base files.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

import hoodie
from tests.interop.judges import Jvm
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
SIMPLE = {"hoodie.index.type": "SIMPLE", "hoodie.compact.inline": "false"}
_rows = partial(table_of, SCHEMA)


def _table(path: Path) -> hoodie.Table:
    """A table whose record `a` (ordering value 20) is in the base file and is deleted by a log file."""
    table = hoodie.create(
        path, SCHEMA, record_key="id", ordering="ts", type="merge_on_read", index="simple", name="back", spark=False
    )
    table.upsert(_rows(("a", 20, 1), ("b", 20, 1)))
    table.delete(pa.table({"id": ["a"]}))
    return table


def _upsert(jvm: Jvm, path: Path, *rows: tuple[str, int, int]) -> None:
    jvm.write(
        _rows(*rows), path, table_name="back", key="id", ordering="ts", table_type="MERGE_ON_READ", options=SIMPLE
    )


def test_the_deleted_row_is_visible_again_and_the_result_says_so(jvm: Jvm, tmp_path: Path) -> None:
    table, theirs = _table(tmp_path / "ours"), _table(tmp_path / "theirs")
    (note,) = table.upsert(_rows(("a", 10, 2))).notes
    assert "1 rows have the key of a record that a log file deletes" in note
    _upsert(jvm, tmp_path / "theirs", ("a", 10, 2))
    expected = _rows(("a", 20, 1), ("b", 20, 1))
    for found in (
        table.to_arrow(SCHEMA.names),
        jvm.read(tmp_path / "ours", SCHEMA.names),
        theirs.to_arrow(SCHEMA.names),
    ):
        assert_same_rows(found, expected, key="id")
    # The remedy of the note.
    table.delete(pa.table({"id": ["a"]}))
    table.schedule_compaction()
    table.compact()
    assert table.upsert(_rows(("a", 10, 2))).notes == ()
    expected = _rows(("a", 10, 2), ("b", 20, 1))
    assert_same_rows(jvm.read(tmp_path / "ours", SCHEMA.names), expected, key="id")
    _upsert(jvm, tmp_path / "ours", ("a", 15, 3))
    assert_same_rows(jvm.read(tmp_path / "ours", SCHEMA.names), _rows(("a", 15, 3), ("b", 20, 1)), key="id")


def test_in_another_file_group_the_next_upsert_of_the_jvm_doubles_it(jvm: Jvm, tmp_path: Path) -> None:
    table = _table(tmp_path / "back")
    table.insert(_rows(("a", 10, 2)))
    assert sorted(jvm.read(tmp_path / "back", ["id"])["id"].to_pylist()) == ["a", "b"]
    _upsert(jvm, tmp_path / "back", ("a", 30, 3))
    assert sorted(jvm.read(tmp_path / "back", ["id"])["id"].to_pylist()) == ["a", "a", "b"]
