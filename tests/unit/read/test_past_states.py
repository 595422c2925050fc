"""Reads of the past: commits that overlap, cleaned snapshots, schemas of archived commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.table import table_keys as keys
from hoodie.read.plan import plan_scan
from hoodie.records.condition import Condition
from tests.support.cleans import claim_clean

TIMELINE = Path(".hoodie") / "timeline"


def rows(*ids: str) -> pa.Table:
    """Rows of the tables below."""
    return pa.table({"id": list(ids), "p": ["x"] * len(ids)})


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    """An empty table at `tmp_path / "t"`."""
    return hoodie.create(tmp_path / "t", rows("a"), record_key="id", partition_by="p", spark=False)


def ids(found: pa.Table) -> list[str]:
    """Keys of rows, sorted."""
    return sorted(found["id"].to_pylist())


def complete_at(path: Path, instant: str, completion_time: str) -> None:
    """Let the instant have completed at another time."""
    (found,) = (path / TIMELINE).glob(f"{instant}_*.*commit")
    found.rename(found.with_name(f"{instant}_{completion_time}{found.suffix}"))


def overlap(path: Path, first: hoodie.WriteResult, second: hoodie.WriteResult) -> hoodie.Table:
    """Let the first write have completed after the second."""
    (found,) = (path / TIMELINE).glob(f"{second.instant}_*.*commit")
    later = str(int(found.stem.partition("_")[2]) + 1)
    complete_at(path, first.instant, later)
    return hoodie.open(path, spark=False)


def test_changes_show_each_row_once_where_commits_overlap(table: hoodie.Table, tmp_path: Path) -> None:
    table.insert(rows("0"))
    first, second = table.bulk_insert(rows("a")), table.bulk_insert(rows("b"))
    table = overlap(tmp_path / "t", first, second)
    assert ids(table.changes(until=second.instant)) == ["0", "b"]
    assert ids(table.changes(since=second.instant)) == ["a"]
    assert ids(table.changes(since=second.instant, until=first.instant)) == ["a"]
    assert ids(table.changes(until=first.instant)) == ["0", "a", "b"]


def test_a_replacement_that_completed_later_does_not_hide_rows(table: hoodie.Table, tmp_path: Path) -> None:
    table.insert(rows("0"))
    first = table.insert_overwrite_table(rows("a"))
    second = table.bulk_insert(rows("b"))
    table = overlap(tmp_path / "t", first, second)
    assert ids(table.changes(until=second.instant)) == ["0", "b"]
    assert ids(table.changes(since=second.instant)) == ["a"]


def test_snapshots_that_a_clean_by_versions_damaged_are_refused(table: hoodie.Table) -> None:
    first, second, third = (table.upsert(rows(name)) for name in "abc")
    claim_clean(table, "", second.instant)
    with pytest.raises(UnsupportedError, match=second.instant):
        table.to_arrow(as_of=first.instant)
    with pytest.raises(UnsupportedError, match=second.instant):
        table.changes(until=first.instant)
    assert ids(table.to_arrow(as_of=second.instant)) == ["a", "b"]
    assert ids(table.changes(until=third.instant)) == ["a", "b", "c"]


def test_a_later_clean_does_not_give_back_what_an_earlier_one_took(table: hoodie.Table) -> None:
    first, second, _ = (table.upsert(rows(name)) for name in "abc")
    claim_clean(table, "", second.instant)
    claim_clean(table, first.instant, second.instant)
    with pytest.raises(UnsupportedError, match=second.instant):
        table.to_arrow(as_of=first.instant)


def forget_creation_schema(path: Path) -> None:
    """Leave a table as older JVM writers create it."""
    properties = path / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith(keys.CREATE_SCHEMA)]
    properties.write_text("\n".join(kept))


def test_before_the_oldest_commit_its_schema_counts(table: hoodie.Table, tmp_path: Path) -> None:
    table.upsert(rows("a"))
    table.upsert(rows("b").append_column("more", pa.array([1])))
    forget_creation_schema(tmp_path / "t")
    table = hoodie.open(tmp_path / "t", spark=False)
    with pytest.warns(hoodie.HoodieWarning, match="before"):
        assert table.to_arrow(as_of="2001-01-01").schema.names[5:] == ["id", "p"]
    assert table.changes(until="2001-01-01").schema.names[5:] == ["id", "p"]
    assert table.to_arrow(as_of="2001-01-01").num_rows == table.changes(until="2001-01-01").num_rows == 0


def test_deleted_partitions_say_nothing_of_the_schema(table: hoodie.Table) -> None:
    table.upsert(rows("a"))
    table.delete_partitions(["p=x"])
    facts = [table.view().commit_facts(instant) for instant in table.view().completed_writes()]
    assert [found.changes_schema for found in facts] == [True, False]


def test_a_handle_keeps_the_whole_metadata_of_few_commits(table: hoodie.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.view.commit_cache._COMMITS_KEPT", 2)
    for name in "abcd":
        table.upsert(rows(name))
    table.insert_overwrite_table(rows("e"))
    view = table.view()
    assert ids(table.to_arrow()) == ["e"]
    assert len(view.state.commits) == 2
    assert {view.commit_facts(instant).schema for instant in view.completed_writes()} == {view.schema().avro}
    assert len(view.state.commits) == 2


UNREADABLE: list[tuple[Mapping[str, str], str]] = [
    ({keys.BASE_FILE_FORMAT: "ORC"}, "ORC"),
]


def stored(path: Path, properties: Mapping[str, str]) -> hoodie.Table:
    """The table with other properties, as a JVM could have created it."""
    with (path / ".hoodie" / "hoodie.properties").open("a") as file:
        file.writelines(f"\n{key}={value}" for key, value in properties.items())
    return hoodie.open(path, spark=False)


@pytest.mark.parametrize(("properties", "what"), UNREADABLE, ids=[what for _, what in UNREADABLE])
def test_tables_with_rows_elsewhere_are_not_read(
    table: hoodie.Table, tmp_path: Path, properties: Mapping[str, str], what: str
) -> None:
    table.upsert(rows("a"))
    table = stored(tmp_path / "t", properties)
    calls: tuple[Callable[[], object], ...] = (
        table.to_arrow,
        table.changes,
        lambda: table.read_keys("a"),
        lambda: table.filter_exists(rows("a")),
    )
    for call in calls:
        with pytest.raises(UnsupportedError, match=what):
            call()


def test_tables_without_meta_fields_are_read_but_not_by_key_or_commit(table: hoodie.Table, tmp_path: Path) -> None:
    first = table.upsert(rows("a"))
    table = stored(tmp_path / "t", {keys.POPULATE_META_FIELDS: "false"})
    assert ids(table.to_arrow()) == ids(table.changes(until=first.instant)) == ["a"]
    calls: tuple[Callable[[], object], ...] = (
        lambda: table.changes(since="2001-01-01"),
        lambda: table.read_keys("a"),
        lambda: table.filter_exists(rows("a")),
    )
    for call in calls:
        with pytest.raises(UnsupportedError, match="without meta fields"):
            call()


def test_an_orc_file_in_a_table_of_several_formats_is_refused(table: hoodie.Table, tmp_path: Path) -> None:
    table.upsert(rows("a"))
    (base,) = (tmp_path / "t" / "p=x").glob("*.parquet")
    base.rename(base.with_suffix(".orc"))
    forget = {keys.METADATA_PARTITIONS: ""}
    with pytest.raises(UnsupportedError, match="Parquet base files only"):
        stored(tmp_path / "t", forget).to_arrow()


def test_conditions_are_planned_for_whoever_runs_them(table: hoodie.Table) -> None:
    table.upsert(rows("a"))
    assert len(plan_scan(table.view(), where=Condition.parse("p AND true")).files) == 1
    with pytest.raises(SchemaMismatchError, match="'p'"):
        table.to_arrow(where="p AND true")
    for where in ("q = 1", "p = 'x' AND q = 1"):
        with pytest.raises(SchemaMismatchError, match="'q'"):
            plan_scan(table.view(), where=Condition.parse(where))


def test_columns_are_at_least_one(table: hoodie.Table) -> None:
    table.upsert(rows("a"))
    assert table.to_arrow("id").column_names == ["id"]
    with pytest.raises(InvalidConfigError, match="no columns"):
        table.to_arrow([])
