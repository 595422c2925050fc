"""Two writers and the record index: which pairs commit, and whether the index is the data afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.index.record.building.files import IndexFiles
from hoodie.index.record.state import record_index_of_write
from hoodie.table import Table
from tests.support.index_check import check_index
from tests.support.steps import ONE_TRY, SleepingWrite, once_at
from tests.support.tables import PLAIN, new_table, plain, rows, values_of

EACH_INDEX = pytest.mark.parametrize("index", ["record", "partitioned_record"])


def two_handles(index: str = "record", **properties: str) -> tuple[Table, Table]:
    """A table with `a` in sf and `b` in nyc, and what another writer holds of it."""
    first = plain(("a", 1, "sf"), ("b", 1, "nyc"))
    table = new_table(PLAIN, first, partition_by="city", ordering="ts", index=index, properties=properties)
    return table, Table(table.view().store)


def meanwhile(act: Callable[[], object], write: Callable[[], object]) -> None:
    """Run `write`, and `act` between its beginning and its commit."""
    with once_at(Step.BEGUN, act):
        write()


def test_an_index_that_is_built_anew_before_it_was_read() -> None:
    table, other = two_handles()

    def exchange() -> None:
        """Build an index that also has entries of a later write."""
        third = Table(other.view().store)
        meanwhile(lambda: third.bulk_insert(plain(("x", 1, "la"))), lambda: other.index.build("record", buckets=20))

    began = table.view()
    meanwhile(exchange, lambda: table.cluster(by="ts"))
    check_index(table.view())
    assert values_of(table) == [("a", 1, "sf"), ("b", 1, "nyc"), ("x", 1, "la")]
    with pytest.raises(hoodie.CommitConflictError, match="was built anew") as caught:
        record_index_of_write(began)  # as an upsert that looks its keys up
    assert caught.value.retry_cause


def keys_of(table: Table) -> list[str]:
    return [key for (key,) in values_of(table, "id")]


@pytest.mark.parametrize(
    ("index", "theirs", "ours", "expected"),
    [
        ("record", ("x", 1, "la"), ("x", 1, "la"), ("x", 1, "la")),
        ("partitioned_record", ("x", 1, "la"), ("x", 1, "la"), ("x", 1, "la")),
        ("record", ("x", 1, "la"), ("x", 2, "bln"), ("x", 1, "la")),
        ("record", ("a", 2, "la"), ("a", 3, "bln"), ("a", 2, "la")),
    ],
    ids=["a new key", "a new key of a partition", "a new key in two partitions", "a record that moves"],
)
def test_rows_of_one_key_are_a_conflict(
    index: str, theirs: tuple[str, int, str], ours: tuple[str, int, str], expected: tuple[str, int, str]
) -> None:
    table, other = two_handles(index)
    with pytest.raises(hoodie.CommitConflictError, match="nothing was committed, try again"):
        meanwhile(
            lambda: other.upsert(plain(theirs)),
            lambda: table.upsert(plain(ours, ("y", 1, "bln")), properties=ONE_TRY),
        )
    before = {"a": ("a", 1, "sf"), "b": ("b", 1, "nyc")}
    assert values_of(table) == sorted({**before, expected[0]: expected}.values())
    check_index(table.view())


@EACH_INDEX
@pytest.mark.parametrize("city", ["la", "bln"])
def test_different_new_keys_both_commit(index: str, city: str) -> None:
    """In one new partition, too: each writer makes a file group of its own."""
    table, other = two_handles(index)
    meanwhile(lambda: other.upsert(plain(("x", 1, "la"))), lambda: table.upsert(plain(("y", 1, city))))
    assert keys_of(table) == ["a", "b", "x", "y"]
    check_index(table.view())
    assert table.upsert(plain(("x", 2, "la"), ("y", 2, city))).updated == 2


THEIRS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete([{"id": "a", "city": "sf"}], properties=ONE_TRY),
    "delete_partitions": lambda table: table.delete_partitions(["city=sf"], properties=ONE_TRY),
    "insert_overwrite": lambda table: table.insert_overwrite(rows("c"), properties=ONE_TRY),
}


@EACH_INDEX
@pytest.mark.parametrize("theirs", THEIRS)
def test_an_insert_that_completes_after_a_later_delete_is_in_the_index(index: str, theirs: str) -> None:
    """Entries of a bucket count as their writes were requested, not as they completed."""
    table, other = two_handles(index)
    with pytest.raises(hoodie.CommitConflictError, match="records with the same keys"):
        meanwhile(lambda: THEIRS[theirs](other), lambda: table.bulk_insert(rows("a", ts=9)))
    assert "a" not in keys_of(table)
    table.bulk_insert(rows("a", ts=9))
    check_index(table.view())


@pytest.mark.parametrize("ours", THEIRS)
@pytest.mark.parametrize(("index", "version"), [("record", 6), ("record", 8), ("record", 9), ("partitioned_record", 9)])
def test_a_delete_that_completes_after_an_earlier_insert_does_not_hide_it(index: str, version: int, ours: str) -> None:
    """The insert looks up no keys. Neither write changes a file group of the other."""
    table = new_table(PLAIN, plain(("a", 1, "sf")), partition_by="city", index=index, table_version=version)

    insert = SleepingWrite(table.view().store, lambda other: other.bulk_insert(rows("a", ts=9)), Step.BEGUN)
    with pytest.raises(hoodie.CommitConflictError, match="records with the same keys"):
        meanwhile(insert.wake, lambda: THEIRS[ours](Table(table.view().store)))
    assert insert.error is None
    assert values_of(table) == [("a", 1, "sf"), ("a", 9, "sf")]
    found = table.read_keys([{"id": "a", "city": "sf"}]).to_pylist()
    assert 9 in [row["ts"] for row in found]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_delete_and_an_earlier_insert_of_another_key_both_commit(version: int) -> None:
    table = new_table(PLAIN, plain(("a", 1, "sf")), partition_by="city", index="record", table_version=version)
    insert = SleepingWrite(table.view().store, lambda other: other.bulk_insert(rows("x", ts=9)), Step.BEGUN)
    meanwhile(insert.wake, lambda: THEIRS["delete"](Table(table.view().store)))
    assert insert.error is None
    assert values_of(table) == [("x", 9, "sf")]
    check_index(table.view())


@EACH_INDEX
def test_inserts_beside_deletes_of_other_keys_both_commit(index: str) -> None:
    table, other = two_handles(index)
    meanwhile(lambda: THEIRS["delete"](other), lambda: table.bulk_insert(rows("x", ts=9)))
    assert keys_of(table) == ["b", "x"]
    check_index(table.view())


def test_a_key_that_came_while_the_index_was_built_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the files of the build, under the build's name."""
    table, other = two_handles("global_simple")
    write_base = IndexFiles.write_base

    def write_base_and_act(files: IndexFiles, folder: str) -> None:
        write_base(files, folder)
        other.upsert(plain(("x", 1, "la")))

    monkeypatch.setattr(IndexFiles, "write_base", write_base_and_act)
    with pytest.raises(hoodie.CommitConflictError):
        meanwhile(lambda: other.index.build("record"), lambda: table.upsert(plain(("x", 2, "bln")), properties=ONE_TRY))
    assert values_of(table) == [("a", 1, "sf"), ("b", 1, "nyc"), ("x", 1, "la")]
    check_index(table.view())
    table.upsert(plain(("x", 2, "bln")))
    assert values_of(table) == [("a", 1, "sf"), ("b", 1, "nyc"), ("x", 2, "bln")]
    check_index(table.view())


def test_a_write_that_is_alone_beside_a_build_commits() -> None:
    """Its entries are made once more, for the new buckets."""
    table, other = two_handles()
    with once_at(Step.WRITTEN, lambda: other.index.build("record", buckets=3)):
        assert table.upsert(plain(("x", 2, "bln"), ("a", 2, "la"))).inserted == 1
    assert values_of(table) == [("a", 2, "la"), ("b", 1, "nyc"), ("x", 2, "bln")]
    check_index(table.view())


@EACH_INDEX
def test_a_compaction_of_the_buckets_in_between_hides_nothing(index: str) -> None:
    """Entries of the other write are in a base file then, where every later entry counts."""
    table, other = two_handles(index, **{"hoodie.metadata.compact.max.delta.commits": "3"})

    def act(ts: int) -> None:
        other.upsert(plain(("x", ts, "la")))
        for number in range(4):
            other.upsert(plain((f"other {number}", ts, "far")))

    meanwhile(lambda: act(1), lambda: table.upsert(plain(("y", 1, "la"))))
    names = table.view().store.names(".hoodie/metadata/record_index")
    assert any(name.startswith("record-index-") and name.endswith(".hfile") for name in names)
    with pytest.raises(hoodie.CommitConflictError):
        meanwhile(
            lambda: act(2),
            lambda: table.upsert(plain(("other 3", 1, "la"), ("z", 1, "far")), properties=ONE_TRY),
        )
    check_index(table.view())
