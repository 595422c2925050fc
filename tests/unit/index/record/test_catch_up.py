"""Two writers and the record index: which pairs commit, and whether the index is the data afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.index.record.building.files import IndexFiles
from hoodie.table import Table
from tests.support.index_check import check_index
from tests.support.steps import ONE_TRY, once_at
from tests.unit.write.tables import SCHEMA, trips

INDEXES = ["record", "partitioned_record"]


def new_table(path: Path, index: str = "record") -> Table:
    """`a` in sf and `b` in nyc."""
    table = hoodie.create(path, SCHEMA, record_key="id", partition_by="city", ordering="ts", index=index, spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc")))
    return table


def rows(table: Table) -> list[tuple[str, int, str]]:
    found = table.to_arrow(columns=["id", "ts", "city"]).to_pylist()
    return sorted((row["id"], row["ts"], row["city"]) for row in found)


def meanwhile(act: Callable[[], object], write: Callable[[], object]) -> None:
    """Run `write`, and `act` between its beginning and its commit."""
    with once_at(Step.BEGUN, act):
        write()


def keys(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "city": ["sf"] * len(names)})


@pytest.mark.parametrize("index", INDEXES)
def test_the_same_new_key_is_a_conflict(tmp_path: Path, index: str) -> None:
    table, other = new_table(tmp_path, index), hoodie.open(tmp_path, spark=False)
    here = ("x", 1, 0.0, "la")
    with pytest.raises(hoodie.CommitConflictError, match="nothing was committed, try again"):
        meanwhile(
            lambda: other.upsert(trips(here)),
            lambda: table.upsert(trips(here, ("y", 1, 0.0, "bln")), properties=ONE_TRY),
        )
    assert [key for key, _, _ in rows(table)] == ["a", "b", "x"]
    check_index(table.view())


def test_the_same_new_key_in_two_partitions_is_a_conflict_of_the_global_index(tmp_path: Path) -> None:
    table, other = new_table(tmp_path), hoodie.open(tmp_path, spark=False)
    with pytest.raises(hoodie.CommitConflictError):
        meanwhile(
            lambda: other.upsert(trips(("x", 1, 0.0, "la"))),
            lambda: table.upsert(trips(("x", 2, 0.0, "bln")), properties=ONE_TRY),
        )
    assert [key for key, _, _ in rows(table)] == ["a", "b", "x"]
    check_index(table.view())


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("city", ["la", "bln"])
def test_different_new_keys_both_commit(tmp_path: Path, index: str, city: str) -> None:
    """In one new partition, too: each writer makes a file group of its own."""
    table, other = new_table(tmp_path, index), hoodie.open(tmp_path, spark=False)
    meanwhile(lambda: other.upsert(trips(("x", 1, 0.0, "la"))), lambda: table.upsert(trips(("y", 1, 0.0, city))))
    assert [key for key, _, _ in rows(table)] == ["a", "b", "x", "y"]
    check_index(table.view())
    assert table.upsert(trips(("x", 2, 0.0, "la"), ("y", 2, 0.0, city))).updated == 2


def test_the_same_record_that_moves_is_a_conflict(tmp_path: Path) -> None:
    table, other = new_table(tmp_path), hoodie.open(tmp_path, spark=False)
    with pytest.raises(hoodie.CommitConflictError):
        meanwhile(
            lambda: other.upsert(trips(("a", 2, 0.0, "la"))),
            lambda: table.upsert(trips(("a", 3, 0.0, "bln")), properties=ONE_TRY),
        )
    assert rows(table) == [("a", 2, "la"), ("b", 1, "nyc")]
    check_index(table.view())


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("theirs", ["delete", "delete_partitions", "insert_overwrite"])
def test_an_insert_that_completes_after_a_later_delete_is_in_the_index(tmp_path: Path, index: str, theirs: str) -> None:
    """Entries of a bucket count as their writes were requested, not as they completed."""
    table, other = new_table(tmp_path, index), hoodie.open(tmp_path, spark=False)
    acts: dict[str, Callable[[], object]] = {
        "delete": lambda: other.delete(keys("a")),
        "delete_partitions": lambda: other.delete_partitions(["city=sf"]),
        "insert_overwrite": lambda: other.insert_overwrite(trips(("c", 1, 0.0, "sf"))),
    }
    with pytest.raises(hoodie.CommitConflictError, match="records with the same keys"):
        meanwhile(acts[theirs], lambda: table.bulk_insert(trips(("a", 9, 0.0, "sf"))))
    assert "a" not in {key for key, _, _ in rows(table)}
    table.bulk_insert(trips(("a", 9, 0.0, "sf")))
    check_index(table.view())


@pytest.mark.parametrize("index", INDEXES)
def test_inserts_beside_deletes_of_other_keys_both_commit(tmp_path: Path, index: str) -> None:
    table, other = new_table(tmp_path, index), hoodie.open(tmp_path, spark=False)
    meanwhile(lambda: other.delete(keys("a")), lambda: table.bulk_insert(trips(("x", 9, 0.0, "sf"))))
    assert [key for key, _, _ in rows(table)] == ["b", "x"]
    check_index(table.view())


def test_a_key_that_came_while_the_index_was_built_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the files of the build, under the build's name."""
    table, other = new_table(tmp_path, "global_simple"), hoodie.open(tmp_path, spark=False)
    write_base = IndexFiles.write_base

    def write_base_and_act(files: IndexFiles, folder: str) -> None:
        write_base(files, folder)
        other.upsert(trips(("x", 1, 0.0, "la")))

    monkeypatch.setattr(IndexFiles, "write_base", write_base_and_act)
    with pytest.raises(hoodie.CommitConflictError):
        meanwhile(
            lambda: other.index.build("record"), lambda: table.upsert(trips(("x", 2, 0.0, "bln")), properties=ONE_TRY)
        )
    assert rows(table) == [("a", 1, "sf"), ("b", 1, "nyc"), ("x", 1, "la")]
    check_index(table.view())
    table.upsert(trips(("x", 2, 0.0, "bln")))
    assert rows(table) == [("a", 1, "sf"), ("b", 1, "nyc"), ("x", 2, "bln")]
    check_index(table.view())


def test_a_write_that_is_alone_beside_a_build_commits(tmp_path: Path) -> None:
    """Its entries are made once more, for the new buckets."""
    table, other = new_table(tmp_path), hoodie.open(tmp_path, spark=False)
    with once_at(Step.WRITTEN, lambda: other.index.build("record", buckets=3)):
        assert table.upsert(trips(("x", 2, 0.0, "bln"), ("a", 2, 0.0, "la"))).inserted == 1
    assert rows(table) == [("a", 2, "la"), ("b", 1, "nyc"), ("x", 2, "bln")]
    check_index(table.view())


@pytest.mark.parametrize("index", INDEXES)
def test_a_compaction_of_the_buckets_in_between_hides_nothing(tmp_path: Path, index: str) -> None:
    """Entries of the other write are in a base file then, where every later entry counts."""
    table, other = new_table(tmp_path, index), hoodie.open(tmp_path, spark=False)

    def act(ts: int) -> None:
        other.upsert(trips(("x", ts, 0.0, "la")))
        for number in range(12):
            other.upsert(trips((f"other {number}", ts, 0.0, "far")))

    meanwhile(lambda: act(1), lambda: table.upsert(trips(("y", 1, 0.0, "la"))))
    assert len(list((tmp_path / ".hoodie/metadata/record_index").glob("record-index-*.hfile"))) > 0
    with pytest.raises(hoodie.CommitConflictError):
        meanwhile(
            lambda: act(2),
            lambda: table.upsert(trips(("other 3", 1, 0.0, "la"), ("z", 1, 0.0, "far")), properties=ONE_TRY),
        )
    check_index(table.view())
