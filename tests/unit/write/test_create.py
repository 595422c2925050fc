"""Options of a table: what creation takes, and what an existing table may be taken for."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.records.merging import mergers
from tests.unit.write.tables import SCHEMA, files_below, new_table, trips

NAMED: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (keys.TIMEZONE, "foo"),
        (keys.HIVE_STYLE, "yes"),
        (keys.URL_ENCODE, "1"),
        (keys.SLASH_SEPARATED_DATES, ""),
        ("hoodie.combine.before.upsert", "false"),
    ],
)
def test_properties_without_meaning_are_refused(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(InvalidConfigError, match=key):
        hoodie.create(tmp_path / "t", SCHEMA, **NAMED, properties={key: value})
    assert not hoodie.exists(tmp_path / "t")


def test_names_of_options_come_in_any_case(tmp_path: Path) -> None:
    table = hoodie.create(
        tmp_path / "t", SCHEMA, **NAMED, type="COPY_ON_WRITE", index="Global_Simple", key_generator="Complex"
    )
    assert table.view().config.key_generator is KeyGeneratorType.COMPLEX
    table.upsert(trips(("a", 1, 1.0, "sf")))
    table.upsert(trips(("a", 2, 1.0, "nyc")))
    assert table.to_arrow()["city"].to_pylist() == ["nyc"]


def test_ordering_inside_a_struct_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("m", pa.struct([("ts", pa.int64())]))])
    with pytest.raises(UnsupportedError, match=r"m\.ts"):
        hoodie.create(tmp_path / "t", schema, record_key="id", ordering="m.ts")
    table = hoodie.create(tmp_path / "t", schema, record_key="id")
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
    properties.write_text(f"{text}\n{keys.ORDERING_FIELDS}=m.ts\n")
    with pytest.raises(UnsupportedError, match=r"m\.ts"):
        table.upsert(pa.table({"id": ["a"], "m": [{"ts": 1}]}))


@pytest.mark.parametrize(
    "options",
    [
        {"record_key": "ts"},
        {"partition_by": "fare"},
        {"ordering": "fare"},
        {"type": "merge_on_read"},
        {"index": "global_simple"},
        {"merge_mode": "commit_time"},
        {"key_generator": "complex"},
        {"properties": {keys.HIVE_STYLE: "false"}},
        {"properties": {"hoodie.parquet.compression.codec": "gzip"}},
    ],
    ids=str,
)
def test_an_existing_table_is_not_taken_for_another_one(tmp_path: Path, options: dict[str, Any]) -> None:
    new_table(tmp_path / "t")
    before = files_below(tmp_path)
    (name,) = options.get("properties", options)
    with pytest.raises(InvalidConfigError, match=name):
        hoodie.create(tmp_path / "t", SCHEMA, **{**NAMED, **options}, exist_ok=True)
    assert files_below(tmp_path) == before


def test_an_existing_table_is_opened_by_what_it_is(tmp_path: Path) -> None:
    new_table(tmp_path / "t")
    same: dict[str, Any] = {**NAMED, "merge_mode": "event_time", "properties": {keys.HIVE_STYLE: "TRUE"}}
    assert hoodie.create(tmp_path / "t", SCHEMA, **same, exist_ok=True).to_arrow().num_rows == 2
    assert hoodie.create(tmp_path / "t", SCHEMA, exist_ok=True).to_arrow().num_rows == 2


def test_the_merge_function_of_an_existing_table_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(_: pa.Table, found: pa.Table) -> pa.Table:
        return found

    def other(_: pa.Table, found: pa.Table) -> pa.Table:
        return found

    hoodie.create(tmp_path / "t", SCHEMA, record_key="id", merge_mode=newer)
    monkeypatch.setattr(mergers, "_REGISTERED", {})
    table = hoodie.create(tmp_path / "t", SCHEMA, record_key="id", merge_mode=newer, exist_ok=True)
    assert table.upsert(trips(("a", 1, 1.0, "sf"))).inserted == 1
    with pytest.raises(InvalidConfigError, match="merge_mode"):
        hoodie.create(tmp_path / "t", SCHEMA, merge_mode=other, exist_ok=True)


@pytest.mark.parametrize(
    "given", [{"extra_metadata": {"n": [1]}}, {"properties": {"hoodie.parquet.max.file.size": b"1"}}]
)
def test_what_a_commit_stores_is_text(tmp_path: Path, given: dict[str, Any]) -> None:
    table = new_table(tmp_path / "t")
    before = files_below(tmp_path)
    with pytest.raises(InvalidConfigError, match="expected a dict of texts"):
        table.upsert(trips(("a", 1, 1.0, "sf")), **given)
    assert files_below(tmp_path) == before


def test_file_sizes_of_table_and_write_must_agree(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path / "t", SCHEMA, **NAMED, properties={"hoodie.parquet.small.file.limit": "90000000"})
    with pytest.raises(InvalidConfigError, match="full and small"):
        table.upsert(trips(("a", 1, 1.0, "sf")), properties={"hoodie.parquet.max.file.size": "80000000"})
    assert not table.timeline.instants


def test_a_folder_of_the_properties_may_end_with_a_slash(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, pa.schema([("id", pa.string())]), record_key="id", spark=False)
    file = tmp_path / ".hoodie/hoodie.properties"
    text = file.read_text()
    lines = [line for line in text.splitlines() if not line.startswith("hoodie.timeline.history.path")]
    file.write_text("\n".join([*lines, "hoodie.timeline.history.path=history/"]) + "\n")
    hoodie.open(tmp_path).upsert(pa.table({"id": ["a"]}))
    assert table.to_arrow()["id"].to_pylist() == ["a"]


def test_the_types_of_a_result_are_resolved() -> None:
    assert "look_up" in typing.get_type_hints(hoodie.WriteResult)
    assert "WriteResult" in dir(hoodie)
