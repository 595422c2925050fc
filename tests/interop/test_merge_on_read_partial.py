"""Updates of some columns: `MERGE INTO` of the JVM and `update` of ours log those alone; all readers merge them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.files.logs.log_scan import ScanRule, scan_blocks
from hoodie.view.slices import list_slices
from tests.interop.judges import QUICK_OPTIONS, Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("a", pa.int32()), ("b", pa.string()), ("ord", pa.int64())])
SESSION = {
    **QUICK_OPTIONS,
    "hoodie.spark.sql.merge.into.partial.updates": "true",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}

State = dict[str, tuple[int, str, int]]


def _rows(state: State) -> pa.Table:
    rows = [{"id": key, "a": a, "b": b, "ord": ordering} for key, (a, b, ordering) in state.items()]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _partial_blocks(path: Path) -> list[bool]:
    """Of every block in the table's logs, in order of commits: whether it has some of the columns only."""
    view = hoodie.open(path).view()
    return [
        block.is_partial
        for file_slice in list_slices(view)
        for block in scan_blocks(view.store, file_slice.log_files, ScanRule())
    ]


def test_columns_updated_by_both(jvm: Jvm, tmp_path: Path) -> None:
    """A late update fills what nobody named since; a whole row and what comes first in a base file are complete."""
    path = tmp_path / "partly"
    table = hoodie.create(
        path, SCHEMA, record_key="id", ordering="ord", type="merge_on_read", index="simple", name="partly"
    )
    state: State = {f"k{n}": (0, "0", 20) for n in range(10)}
    table.upsert(_rows(state))

    def theirs(column: str, value: object, ordering: int, keys: Collection[str]) -> None:
        source = " UNION ALL ".join(f"SELECT '{key}' id, {value!r} v, {ordering}L ord" for key in keys)
        jvm.sql(
            f"MERGE INTO {name} t USING ({source}) s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET {column} = s.v, ord = s.ord"
        )

    def ours(column: str, expression: str, *keys: str) -> None:
        where = f"id IN ({', '.join(map(repr, keys))})"
        table.update({column: expression}, where, properties={"hoodie.python.partial.updates": "always"})

    def check(changed: State) -> None:
        state.update(changed)
        assert_same_rows(table.to_arrow(columns=SCHEMA.names), _rows(state), key="id")
        rows = jvm.read(path)
        assert_same_rows(rows, table.to_arrow(), key="id", meta=True)
        assert_same_rows(read_with_hudi_rs(path), rows, key="id", meta=True)

    with jvm.configured(SESSION), jvm.named(path) as name:
        theirs("a", 1, 30, ["k0", "k1", "k2", "k3", "k4"])
        ours("b", "'2'", "k2", "k3", "k4", "k5", "k6")
        check({f"k{n}": (int(n <= 4), "2" if n >= 2 else "0", 30 if n <= 4 else 20) for n in range(7)})
        theirs("b", "3", 25, ["k0", "k3", "k5"])
        assert _partial_blocks(path) == [True] * 3
        check({"k0": (1, "3", 30), "k5": (0, "3", 25)})
        table.upsert(_rows({"k1": (4, "4", 30)}))
        ours("a", "a + 10", "k1", "k4", "k7")
        assert _partial_blocks(path) == [True] * 3 + [False, True]
        changed: State = {"k1": (14, "4", 30), "k4": (11, "2", 30), "k7": (10, "0", 20)}
        check(changed)
        jvm.compact(path)
        check({})
        theirs("a", 7, 20, ["k2", "k8"])
        ours("b", "'7'", "k8", "k9")
        check({"k8": (7, "7", 20), "k9": (0, "7", 20)})
        table.schedule_compaction()
        table.compact()
        check({})
        assert_same_rows(jvm.read_optimized(path, SCHEMA.names), _rows(state), key="id")


def test_columns_updated_in_the_order_of_commits(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "partly"
    table = hoodie.create(path, SCHEMA, record_key="id", type="merge_on_read", index="simple", name="partly")
    table.upsert(_rows({"a": (0, "0", 20), "b": (0, "0", 20), "c": (0, "0", 20)}))
    table.update({"a": "a + 1"}, "id IN ('a', 'b')")
    table.upsert(_rows({"b": (5, "5", 5)}))
    table.update({"b": "'2'"}, "id IN ('b', 'c')")
    assert _partial_blocks(path) == [True, False, True]
    expected = _rows({"a": (1, "0", 20), "b": (5, "2", 5), "c": (0, "2", 20)})
    assert_same_rows(jvm.read(path, SCHEMA.names), expected, key="id")
    assert_same_rows(read_with_hudi_rs(path), table.to_arrow(), key="id", meta=True)
    jvm.compact(path)
    assert_same_rows(table.to_arrow(columns=SCHEMA.names), expected, key="id")


def test_with_a_record_index_whole_rows_are_logged(jvm: Jvm, tmp_path: Path) -> None:
    """To find out what leaves its index the JVM reads logs by a way of its own, which knows no parts of rows."""
    path = tmp_path / "wholly"
    table = hoodie.create(path, SCHEMA, record_key="id", ordering="ord", type="merge_on_read", name="wholly")
    table.upsert(_rows({"a": (0, "0", 20), "b": (0, "0", 20)}))
    table.update({"a": "a + 1"})
    assert _partial_blocks(path) == [False]
    jvm.write(
        _rows({"b": (0, "0", 0)}), path, table_name="wholly", key="id", ordering="ord", operation="delete",
        table_type="MERGE_ON_READ",
    )  # fmt: skip
    assert_same_rows(jvm.read(path, SCHEMA.names), _rows({"a": (1, "0", 20)}), key="id")
