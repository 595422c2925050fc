"""Damaged and foreign tables: each damage has its own error, with the path, and no call makes it worse."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.unit.write.tables import SCHEMA, files_below, new_table, trips

PROPERTIES = ".hoodie/hoodie.properties"


def base_file(path: Path, city: str) -> Path:
    (found,) = (path / f"city={city}").glob("*.parquet")
    return found


@pytest.mark.parametrize("content", [None, {"notes.txt": b"hello"}, {".hoodie/aux": b""}])
def test_not_a_table(tmp_path: Path, content: dict[str, bytes] | None) -> None:
    root = tmp_path / "here"
    for name, data in (content or {}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    before = files_below(tmp_path)
    with pytest.raises(hoodie.TableNotFoundError, match=r"is not a Hudi table: expected .hoodie/hoodie.properties"):
        hoodie.open(root)
    assert not hoodie.exists(root)
    assert files_below(tmp_path) == before


def test_properties_that_are_gone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    (tmp_path / PROPERTIES).unlink()
    before = files_below(tmp_path)
    with pytest.raises(hoodie.TableNotFoundError, match=r"lost \.hoodie/hoodie\.properties; restore it"):
        table.upsert(trips(("x", 1, 1.0, "sf")))
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("damage", ["empty", "cut", "other name"])
def test_properties_that_are_damaged(tmp_path: Path, damage: str) -> None:
    table = new_table(tmp_path)
    file = tmp_path / PROPERTIES
    data = file.read_bytes()
    file.write_bytes(
        {"empty": b"", "cut": data[: len(data) // 2], "other name": data.replace(b"table.name=", b"table.name=x")}[
            damage
        ]
    )
    before = files_below(tmp_path)
    for call in (lambda: hoodie.open(tmp_path), table.to_arrow, lambda: table.upsert(trips(("x", 1, 1.0, "sf")))):
        with pytest.raises(hoodie.CorruptFileError, match=r"hoodie\.properties") as caught:
            call()
        assert caught.value.path.endswith(PROPERTIES)
    assert files_below(tmp_path) == before


def test_a_completed_instant_without_content(tmp_path: Path) -> None:
    new_table(tmp_path)
    (completed,) = (tmp_path / ".hoodie" / "timeline").glob("*.commit")
    completed.write_bytes(b"")
    before = files_below(tmp_path)
    for is_write in (False, True):
        table = hoodie.open(tmp_path)
        with pytest.raises(hoodie.CorruptFileError, match="expected the commit metadata") as caught:
            table.upsert(trips(("x", 1, 1.0, "sf"))) if is_write else table.to_arrow()
        assert completed.name in caught.value.path
    assert files_below(tmp_path) == before


def test_a_completed_instant_of_nonsense(tmp_path: Path) -> None:
    new_table(tmp_path)
    (completed,) = (tmp_path / ".hoodie" / "timeline").glob("*.commit")
    completed.write_bytes(b"Obj\x01 but no more")
    with pytest.raises(hoodie.CorruptFileError) as caught:
        hoodie.open(tmp_path).to_arrow()
    assert completed.name in caught.value.path


@pytest.mark.parametrize("length", [0, 3, 100, -1, -200])
def test_a_truncated_base_file(tmp_path: Path, length: int) -> None:
    table = new_table(tmp_path)
    file = base_file(tmp_path, "sf")
    file.write_bytes(file.read_bytes()[:length])
    before = files_below(tmp_path)
    calls = (
        table.to_arrow,
        lambda: table.to_arrow(where="fare > 0"),
        lambda: table.upsert(trips(("a", 2, 5.0, "sf"))),
        lambda: table.insert(trips(("x", 2, 5.0, "sf"))),
        lambda: table.update({"fare": "1.0"}),
        lambda: table.delete_where("fare > 0"),
    )
    for call in calls:
        with pytest.raises(hoodie.CorruptFileError, match="expected a whole Parquet file") as caught:
            call()
        assert str(file) in caught.value.path
        assert str(file) in str(caught.value)
    assert files_below(tmp_path) == before
    assert table.to_arrow(where="city = 'nyc'").num_rows == 1


def test_damage_inside_a_base_file(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    file = base_file(tmp_path, "sf")
    data = bytearray(file.read_bytes())
    data[4:400] = bytes(396)
    file.write_bytes(data)
    for call in (table.to_arrow, lambda: table.upsert(trips(("a", 2, 5.0, "sf")))):
        with pytest.raises(hoodie.CorruptFileError, match="cannot be read") as caught:
            call()
        assert str(file) in caught.value.path


def test_a_base_file_that_is_gone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    file = base_file(tmp_path, "sf")
    file.unlink()
    before = files_below(tmp_path)
    for call in (table.to_arrow, lambda: table.upsert(trips(("a", 2, 5.0, "sf")))):
        with pytest.raises(hoodie.MissingFileError, match=file.name):
            call()
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_an_ordering_field_that_is_no_column_is_named(tmp_path: Path, table_type: str) -> None:
    rows = pa.table({"id": ["a"], "ts": [1]})
    table = hoodie.create(tmp_path, rows.schema, record_key="id", ordering="ts", type=table_type)
    table.upsert(rows)
    properties = tmp_path / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    assert "ordering.fields=ts" in text
    properties.write_text(text.replace("ordering.fields=ts", "ordering.fields=tz"))
    with pytest.raises(hoodie.InvalidConfigError, match=r"'tz'.*hoodie\.table\.ordering\.fields"):
        hoodie.open(tmp_path).upsert(rows)


@pytest.mark.parametrize("damage", ["missing", "cut"])
@pytest.mark.parametrize("call", ["delete_partitions", "insert_overwrite", "insert_overwrite_table"])
def test_a_damaged_partition_can_be_replaced(tmp_path: Path, damage: str, call: str) -> None:
    """The footers of replaced files are read only to count their records."""
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", index="simple", spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf"), ("b", 1, 1.0, "la")))
    file = base_file(tmp_path, "sf")
    file.write_bytes(file.read_bytes()[:100])
    if damage == "missing":
        file.unlink()
    if call == "delete_partitions":
        result = table.delete_partitions(["city=sf"])
    else:
        result = getattr(table, call)(trips(("c", 1, 1.0, "sf")))
    assert result.deleted is None
    assert any("replaced files were not counted" in note for note in result.notes)
    kept = {"delete_partitions": ["b"], "insert_overwrite": ["b", "c"], "insert_overwrite_table": ["c"]}[call]
    assert sorted(table.to_arrow()["id"].to_pylist()) == kept
