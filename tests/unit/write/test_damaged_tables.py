"""Damaged and foreign tables: each damage has its own error, with the path, and no call makes it worse."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError, HoodieError, InvalidConfigError, MissingFileError, TableNotFoundError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.table import Table
from tests.support import tables
from tests.unit.write.tables import FIRST, files_of, memory_of, new_table, trips, untouched

PROPERTIES, COMMIT, DATA = r"^\.hoodie/hoodie\.properties", r"^\.hoodie/timeline/.*\.commit$", r"^city=sf/.*\.parquet"
Change = Callable[[bytes], bytes] | None


def damage(table: Table, pattern: str, change: Change) -> str:
    """Change or delete the newest file of data or instants whose path matches; return its path."""
    store = table.view().store
    paths = [path for path, data in files_of(table).items() if re.search(pattern, path) and len(data) > 100]
    path = max(paths, key=lambda path: path.rpartition("/")[2].partition("_")[2])
    if change is None:
        store.delete(path)
    else:
        store.replace(path, change(store.read(path)))
    return path


@pytest.mark.parametrize("content", [None, {"notes.txt": b"hello"}, {".hoodie/aux": b""}])
def test_not_a_table(tmp_path: Path, content: dict[str, bytes] | None) -> None:
    root = tmp_path / "here"
    for name, data in (content or {}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    with untouched(tmp_path, r"is not a Hudi table: expected .hoodie/hoodie.properties", TableNotFoundError):
        hoodie.open(root)
    assert not hoodie.exists(root)


CHANGED = trips(("a", 2, 5.0, "sf"))
CALLS: dict[str, list[Callable[[Table], Any]]] = {
    PROPERTIES: [lambda t: hoodie.open(t.path), lambda t: t.to_arrow(), lambda t: t.upsert(CHANGED)],
    COMMIT: [lambda t: hoodie.open(t.path).to_arrow(), lambda t: hoodie.open(t.path).upsert(CHANGED)],
    DATA: [
        lambda t: t.to_arrow(),
        lambda t: t.to_arrow(where="fare > 0"),
        lambda t: t.upsert(CHANGED),
        lambda t: t.insert(trips(("x", 2, 5.0, "sf"))),
        lambda t: t.update({"fare": "1.0"}),
        lambda t: t.delete_where("fare > 0"),
    ],
}
"""What needs a file."""
NAME, WHOLE = r"hoodie\.properties", "expected a whole Parquet file"
DAMAGES: dict[str, tuple[str, Change, type[HoodieError], str]] = {
    "no properties": (PROPERTIES, None, TableNotFoundError, r"lost \.hoodie/hoodie\.properties; restore it"),
    "empty properties": (PROPERTIES, lambda _: b"", CorruptFileError, NAME),
    "half the properties": (PROPERTIES, lambda data: data[: len(data) // 2], CorruptFileError, NAME),
    "another name": (PROPERTIES, lambda data: data.replace(b"table.name=", b"table.name=x"), CorruptFileError, NAME),
    "empty commit": (COMMIT, lambda _: b"", CorruptFileError, "expected the commit metadata"),
    "commit of nonsense": (COMMIT, lambda _: b"Obj\x01 but no more", CorruptFileError, r"\.commit"),
    "empty file": (DATA, lambda _: b"", CorruptFileError, WHOLE),
    "3 bytes of a file": (DATA, lambda data: data[:3], CorruptFileError, WHOLE),
    "100 bytes of a file": (DATA, lambda data: data[:100], CorruptFileError, WHOLE),
    "all but a byte of a file": (DATA, lambda data: data[:-1], CorruptFileError, WHOLE),
    "all but 200 bytes of a file": (DATA, lambda data: data[:-200], CorruptFileError, WHOLE),
    "zeros in a file": (DATA, lambda data: data[:4] + bytes(396) + data[400:], CorruptFileError, "cannot be read"),
    "no file": (DATA, None, MissingFileError, r"\.parquet"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_file_is_named_and_nothing_changes(case: str) -> None:
    pattern, change, error, text = DAMAGES[case]
    table = new_table(FIRST)
    store, path = memory_of(table), damage(table, pattern, change)
    for call in CALLS[pattern]:
        with untouched(store, text, error) as caught:
            call(table)
        assert path in str(caught.value)
        if isinstance(caught.value, CorruptFileError):
            assert path in caught.value.path
    if pattern == DATA:
        assert table.to_arrow(where="city = 'nyc'").num_rows == 1


@pytest.mark.parametrize("table_type", tables.TYPES)
def test_an_ordering_field_that_is_no_column_is_named(table_type: str) -> None:
    rows = pa.table({"id": ["a"], "ts": [1]})
    table = tables.new_table(rows.schema, rows, ordering="ts", type=table_type)
    damage(table, PROPERTIES, lambda data: data.replace(b"ordering.fields=ts", b"ordering.fields=tz"))
    with pytest.raises(InvalidConfigError, match=r"'tz'.*hoodie\.table\.ordering\.fields"):
        hoodie.open(table.path).upsert(rows)


@pytest.mark.parametrize("change", [None, lambda data: data[:100]], ids=["missing", "cut"])
@pytest.mark.parametrize(
    ("call", "kept"),
    [("delete_partitions", ["b"]), ("insert_overwrite", ["b", "c"]), ("insert_overwrite_table", ["c"])],
)
def test_a_damaged_partition_can_be_replaced(change: Change, call: str, kept: list[str]) -> None:
    """The footers of replaced files are read only to count their records."""
    table = new_table(FIRST, index="simple")
    damage(table, DATA, change)
    result = getattr(table, call)(["city=sf"] if call == "delete_partitions" else trips(("c", 1, 1.0, "sf")))
    assert result.deleted is None
    assert any("replaced files were not counted" in note for note in result.notes)
    assert [key for (key,) in tables.values_of(table, "id")] == kept


CHANGES: dict[str, Change] = {
    "half": lambda data: data[: len(data) // 2],
    "nothing": lambda _: b"",
    "appended": lambda data: data + b"appended",
    "gone": None,
}
"""What happens to a log file."""
KEYS = [f"k{number}" for number in range(50)]
INDEXES = ("record", "simple")


def whole(index: str, **properties: str) -> Table:
    """A table with 50 rows, of which five have a newer version in a log file."""
    named: dict[str, Any] = {"ordering": "ts", "partition_by": "city", "type": "merge_on_read", "index": index}
    named["properties"] = properties
    return tables.new_table(tables.PLAIN, tables.rows(*KEYS), tables.rows(*KEYS[:5], ts=2), **named)


def damaged_log(table: Table, folder: str, kind: str) -> str:
    """Damage the newest log file of a folder; return its name."""
    return damage(table, rf"^{folder}/\..*\.log", CHANGES[kind]).rpartition("/")[2]


def assert_refused(name: str, kind: str, *calls: Callable[[], object]) -> None:
    error = MissingFileError if kind == "gone" else CorruptFileError
    for call in calls:
        with pytest.raises(error) as caught:
            call()
        assert name in str(caught.value)
        assert "restore the file from a copy" in str(caught.value)


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("index", INDEXES)
def test_a_log_file(index: str, kind: str) -> None:
    table = whole(index)
    name = damaged_log(table, "city=sf", kind)
    needs = table.index.verify if index == "record" else lambda: table.upsert(tables.rows(*KEYS, ts=3))
    assert_refused(name, kind, table.to_arrow, lambda: table.read_keys(["k1"]), table.changes, needs)
    table.schedule_compaction()
    with pytest.raises(CorruptFileError, match="does not exist" if kind == "gone" else name):
        table.compact()
    assert len(table.pending_compactions()) == 1
    assert table.to_arrow(view="read_optimized").num_rows == 50


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("index", INDEXES)
def test_a_log_file_of_the_file_listing(index: str, kind: str) -> None:
    table = whole(index)
    name = damaged_log(table, ".hoodie/metadata/files", kind)
    assert_refused(name, kind, table.to_arrow, lambda: table.upsert(tables.rows(*KEYS)), table.schedule_compaction)


@pytest.mark.parametrize("kind", CHANGES)
def test_a_log_file_of_the_record_index(kind: str) -> None:
    table = whole("record")
    name = damaged_log(table, ".hoodie/metadata/record_index", kind)
    assert_refused(name, kind, table.index.verify)
    if kind != "gone":
        assert_refused(name, kind, lambda: table.upsert(tables.rows(*KEYS)), lambda: table.record_locations(KEYS))
    table.index.drop("record")
    table.index.build("record")
    assert table.index.verify().ok
    table.upsert(tables.rows(*KEYS, ts=3))
    assert table.to_arrow().num_rows == 50


def test_a_compaction_of_the_index_does_not_make_a_loss_final() -> None:
    table = whole("record", **{"hoodie.metadata.compact.max.delta.commits": "4"})
    name = damaged_log(table, ".hoodie/metadata/record_index", "gone")

    def upsert_until_the_index_is_compacted() -> None:
        for ts in range(4):
            table.upsert(tables.rows("k0", ts=3 + ts))

    with pytest.raises(MissingFileError, match=name):
        upsert_until_the_index_is_compacted()
    assert table.to_arrow().num_rows == 50


def test_a_compaction_compares_lengths_with_the_commits() -> None:
    table = whole("simple")
    store = memory_of(table)
    update_table_config(store, {keys.METADATA_PARTITIONS: None})
    store.delete_folder(".hoodie/metadata")
    table = hoodie.open(table.path, spark=False)
    (path,) = (info.path for info in store.list("city=sf") if ".log." in info.name)
    data = store.read(path)
    store.replace(path, data * 2)
    table.schedule_compaction()
    with pytest.raises(CorruptFileError, match=f"expected {len(data)} bytes"):
        table.compact()
    store.replace(path, data)
    assert table.compact().instant is not None
    assert table.to_arrow(view="read_optimized", where="ts = 2").num_rows == 5
