"""Batches of streams: each is written once, whatever dies or meets; numbers that begin anew are refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import HoodieWarning, InvalidConfigError, StreamCheckpointError
from hoodie.format.instants.sink_checkpoint import CHECKPOINT_KEY, QUERY_KEY
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.write.stream_batch import OPERATIONS
from tests.support.archived import OFTEN, active_times
from tests.support.deaths import deaths, run_until
from tests.support.steps import SleepingWrite, once_at
from tests.support.tables import PLAIN, copy_of, new_table, rows, values_of
from tests.unit.write.tables import memory_of, untouched

OTHER = {"hoodie.datasource.write.streaming.checkpoint.identifier": "other"}


@pytest.fixture
def store() -> MemoryStore:
    return memory_of(new_table(PLAIN, partition_by="city"))


def shown(store: MemoryStore) -> list[tuple[str, int]]:
    return values_of(Table(store), "id", "ts")


def extra(store: MemoryStore) -> dict[str, str]:
    """The extra metadata of the newest commit."""
    view = Table(store).view()
    return dict(view.commit_metadata(view.completed_writes()[-1]).extra_metadata)


def test_a_batch_is_written_once_and_its_commit_names_it_as_the_jvm_does(store: MemoryStore) -> None:
    table = Table(store)
    for number in (0, 1, 7):
        result = table.write_batch(rows(f"k{number}"), number, operation="insert", query="q1")
        assert result is not None
        assert result.inserted == 1
        assert extra(store)[CHECKPOINT_KEY] == f'{{"default_single_writer":"{number}"}}'
        assert json.loads(extra(store)[QUERY_KEY]) == {"default_single_writer": "q1"}
        for again in range(number + 1):
            assert Table(store).write_batch(rows("lost"), again, operation="insert", query="q1") is None
    assert shown(store) == [("k0", 1), ("k1", 1), ("k7", 1)]
    # Each identifier is a stream of its own.
    assert table.write_batch(rows("o"), 0, properties=OTHER, query="q2") is not None
    assert table.write_batch(rows("p"), 0, identifier="third") is not None
    assert table.write_batch(rows("lost"), 7, query="q1") is None
    assert len(shown(store)) == 5


def test_the_name_of_a_stream_may_be_stored(store: MemoryStore) -> None:
    table = Table(store)
    assert table.write_batch(rows("a"), 0) is not None
    for key, name in OTHER.items():
        table.alter.set_property(key, name)
    for handle in (table, Table(store)):
        handle.write_batch(rows("b"), 0)
        assert extra(store)[CHECKPOINT_KEY] == '{"other":"0"}'
    assert table.write_batch(rows("c"), 0, identifier="third") is not None


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_of_a_stream_writes_once(store: MemoryStore, operation: str) -> None:
    table = Table(store)
    table.upsert(rows("a", "b"))
    data = rows("a", ts=2)
    assert table.write_batch(data, 3, operation=operation) is not None
    assert extra(store)[CHECKPOINT_KEY] == '{"default_single_writer":"3"}'
    before = active_times(store)
    assert table.write_batch(data, 3, operation=operation) is None
    assert active_times(store) == before


def test_numbers_that_begin_anew_are_refused(store: MemoryStore) -> None:
    table = Table(store)
    table.write_batch(rows("a"), 4, query="old")
    before = active_times(store)
    with pytest.raises(StreamCheckpointError, match="batch 4, of query old, and query new numbers its batches anew"):
        table.write_batch(rows("b"), 0, query="new")
    assert active_times(store) == before
    assert table.write_batch(rows("b"), 5, query="new") is not None
    with pytest.raises(StreamCheckpointError, match="of query new"):
        table.write_batch(rows("c"), 5, query="old")


def test_batches_that_were_taken_back_are_named_once(store: MemoryStore) -> None:
    table = Table(store)
    before = table.upsert(rows("old"))
    for number in (0, 1):
        table.write_batch(rows(f"k{number}"), number, query="q")
    kept = table.write_batch(rows("k2"), 2, query="q")
    lost = [table.write_batch(rows(f"k{number}"), number, query="q") for number in (3, 4)]
    table.upsert(rows("other"))
    assert kept is not None
    assert lost[0] is not None
    table.restore(kept.instant)
    stream = "batch 5 of the stream 'default_single_writer' of query q"
    with pytest.warns(HoodieWarning, match=f"{stream}: the table has no commit of batches 3 to 4, and restore"):
        assert table.write_batch(rows("k5"), 5, query="q") is not None
    assert table.write_batch(rows("k6"), 6, query="q") is not None  # The gap is behind it: warnings are errors here.
    newest = table.write_batch(rows("k7"), 7, query="q")
    assert newest is not None
    table.rollback(newest.instant)
    with pytest.warns(HoodieWarning, match="no commit of batch 7, and rollback"):
        table.write_batch(rows("k8"), 8, query="q")
    table.restore(before.instant)
    with pytest.warns(HoodieWarning, match="no commit of batches 0 to 8, and restore"):
        table.write_batch(rows("k9"), 9, query="q")
    assert shown(store) == [("k9", 1), ("old", 1)]


def test_gaps_without_a_restore_are_not_reported(store: MemoryStore) -> None:
    table = Table(store)
    table.write_batch(rows("a"), 3, query="q")
    calls = len(run_until(copy_of(store), lambda table: table.upsert(rows("dead")), None).calls)
    run_until(store, lambda table: table.upsert(rows("dead")), calls // 2)  # Its rollback takes no batch back.
    forget_all()
    for number in (5, 9):
        assert table.write_batch(rows(f"k{number}"), number, query="q") is not None
    assert shown(store) == [("a", 1), ("k5", 1), ("k9", 1)]
    assert [found.action.value for found in table.timeline.completed()].count("rollback") == 1


def test_a_commit_of_the_jvm_names_no_query(store: MemoryStore) -> None:
    table = Table(store)
    table.upsert(rows("a"), extra_metadata={CHECKPOINT_KEY: '{"default_single_writer":"4"}'})
    with pytest.warns(HoodieWarning, match="of a query that is not known"):
        assert table.write_batch(rows("b"), 4, query="mine") is None
    with pytest.raises(StreamCheckpointError, match="an unknown query"):
        table.write_batch(rows("b"), 3, query="mine")
    assert table.write_batch(rows("b"), 3) is None
    assert table.write_batch(rows("b"), 5, query="mine") is not None


def test_the_archive_remembers_the_batches_of_a_stream(store: MemoryStore) -> None:
    table = Table(store)
    table.write_batch(rows("a"), 2, operation="insert", query="q")
    table.write_batch(rows("x"), 9, identifier="other")
    for number in range(12):
        table.upsert(rows(f"u{number}"), properties=OFTEN)
    view = table.view()
    assert not any(view.commit_facts(instant).sink for instant in view.completed_writes())
    assert table.write_batch(rows("a"), 2, operation="insert", query="q") is None
    assert table.write_batch(rows("b"), 3, operation="insert", query="q") is not None
    assert table.write_batch(rows("y"), 9, identifier="other") is None


def test_services_that_are_due_follow_a_batch() -> None:
    store = memory_of(new_table(PLAIN, partition_by="city", type="merge_on_read"))
    due = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    Table(store).write_batch(rows("a"), 0, properties=due)
    result = Table(store).write_batch(rows("a", ts=2), 1, properties=due)
    assert result is not None
    assert result.compaction is not None
    assert shown(store) == [("a", 2)]


def test_of_two_attempts_at_once_one_commits(store: MemoryStore) -> None:
    def other() -> None:
        assert Table(store).write_batch(rows("a"), 0, operation="insert", query="q") is not None

    for step in (Step.PREPARED, Step.LOCATED):
        number = len(shown(store))

        def zombie(number: int = number) -> None:
            done = Table(store).write_batch(rows(f"k{number}"), number, operation="insert", query="q")
            assert done is not None

        with once_at(step, zombie):
            mine = Table(store).write_batch(rows(f"k{number}"), number, operation="insert", query="q")
        assert mine is None
    assert shown(store) == [("k0", 1), ("k1", 1)]
    assert Table(store).timeline.pending().instants == ()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_of_two_attempts_the_earlier_one_may_complete_while_the_later_one_runs(version: int) -> None:
    """Another write completed in between: in version 6 its requested time is later than that of the first attempt."""
    store = memory_of(new_table(PLAIN, partition_by="city", table_version=version))

    def send(table: Table) -> object:
        return table.write_batch(rows("a"), 5, operation="insert", query="q")

    first = SleepingWrite(store, send, Step.BEGUN)
    Table(store).insert(rows("other"))
    with once_at(Step.BEGUN, first.wake):
        assert send(Table(store)) is None
    assert first.error is None
    assert shown(store) == [("a", 1), ("other", 1)]


WRONG: list[tuple[Callable[[Table], object], str]] = [
    (lambda t: t.write_batch(rows("a"), -1), "from 0"),
    (lambda t: t.write_batch(rows("a"), True), "from 0"),
    (lambda t: t.write_batch(rows("a"), 0, operation="merge"), "takes one of upsert, insert"),
    (lambda t: t.stream(rows("a"), checkpoint="c"), "expected a streaming DataFrame"),
]


def test_a_wrong_call_is_refused(store: MemoryStore) -> None:
    for call, says in WRONG:
        with untouched(store, says, InvalidConfigError):
            call(Table(store))


def test_a_batch_that_dies_at_any_call_and_is_sent_again_is_there_once(store: MemoryStore) -> None:
    def send(table: Table) -> object:
        return table.write_batch(rows("b"), 1, operation="insert", query="q")

    Table(store).write_batch(rows("a"), 0, operation="insert", query="q")
    for death in deaths(store, send, every_point=True, keep=10):
        forget_all()
        send(Table(death.store))
        assert shown(death.store) == [("a", 1), ("b", 1)], str(death)
