"""The completed file of an overwrite is written anew: exactly the file groups that the write replaced are replaced."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.commit.steps import Step
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.storage import Store
from hoodie.table import Table
from tests.support.steps import once_at
from tests.support.tables import new_table, values_of

Rows = list[tuple[str, str, int]]
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("x", pa.int64())])


def rows(*keys: str, city: str = "sf", x: int = 1) -> pa.Table:
    return pa.table({"id": [*keys], "city": [city] * len(keys), "x": [x] * len(keys)}, SCHEMA)


def made(*writes: pa.Table, table_type: str = "copy_on_write", version: int = 9) -> Table:
    """A table with a file group for each write: nothing looks for small files."""
    table = new_table(SCHEMA, type=table_type, index="simple", partition_by="city", table_version=version)
    for data in writes:
        table.bulk_insert(data)
    return table


def tear_last(table: Table) -> str:
    """Cut the completed file of the newest replace commit; return its instant."""
    instant = [found for found in table.timeline.completed() if found.action.value == "replacecommit"][-1]
    path = path_of(table, instant.requested_time, "replacecommit")
    store = table.view().store
    store.replace(path, store.read(path)[:-30])
    return instant.requested_time


def path_of(table: Table, instant: str, ending: str) -> str:
    view = table.view()
    folder = view.layout.instant_folder()
    names = [info.path for info in view.store.list(folder) if info.name.startswith(instant)]
    return next(path for path in names if path.endswith(f".{ending}"))


def forget_plan(table: Table, instant: str) -> None:
    """Let the plan be one of another engine or of an earlier release."""
    store = table.view().store
    store.replace(path_of(table, instant, "replacecommit.requested"), RequestedReplaceMetadata().to_bytes())


def repaired(table: Table) -> str:
    """Repair; return the notes."""
    store: Store = table.view().store
    assert Table(store).verify().problems.get("completion-lost") == 1
    notes = Table(store).repair(dry_run=False).notes
    return "\n".join(notes)


def check(table: Table, expected: Rows) -> None:
    again = Table(table.view().store)
    assert values_of(again) == sorted(expected)
    assert again.verify(full=True).ok


def lose_a_log(table: Table) -> str:
    (path,) = (found for found in paths_of(table) if ".log." in found)
    table.view().store.delete(path)
    return path


def paths_of(table: Table) -> list[str]:
    files = table.inspect.files().to_pylist()
    return [f"{row['partition_path']}/{row['file']}" for row in files if row["is_current"]]


def test_an_accepted_loss_replaces_its_own_file_groups_only() -> None:
    table = made(rows("a"), rows("b"), table_type="merge_on_read")
    table.upsert(rows("a", x=2))
    table.repair(accept_loss=[lose_a_log(table)], dry_run=False)
    expected = [("a", "sf", 1), ("b", "sf", 1)]
    check(table, expected)
    tear_last(table)
    repaired(table)
    check(table, expected)


def test_an_accepted_loss_of_an_earlier_release_is_not_guessed() -> None:
    table = made(rows("a"), rows("b"), table_type="merge_on_read")
    table.upsert(rows("a", x=2))
    table.repair(accept_loss=[lose_a_log(table)], dry_run=False)
    forget_plan(table, tear_last(table))
    assert "it may have replaced some of the file groups of its partitions only" in repaired(table)
    assert "completion-lost" in Table(table.view().store).verify().problems


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("whole_table", [False, True])
def test_file_groups_that_were_added_while_the_overwrite_ran_stay(whole_table: bool, version: int) -> None:
    table = made(rows("a"), rows("n", city="nyc"), version=version)
    store = table.view().store
    overwrite = table.insert_overwrite_table if whole_table else table.insert_overwrite
    with once_at(Step.WRITTEN, lambda: Table(store).bulk_insert(rows("late"))):
        overwrite(rows("b"))
    expected = [("b", "sf", 1), ("late", "sf", 1), *([] if whole_table else [("n", "nyc", 1)])]
    check(table, expected)
    tear_last(table)
    repaired(table)
    check(table, expected)


@pytest.mark.parametrize("whole_table", [False, True])
def test_another_writer_may_have_seen_what_was_added_meanwhile(whole_table: bool) -> None:
    table = made(rows("a"))
    store = table.view().store
    overwrite = table.insert_overwrite_table if whole_table else table.insert_overwrite
    with once_at(Step.WRITTEN, lambda: Table(store).bulk_insert(rows("late"))):
        overwrite(rows("b"))
    forget_plan(table, tear_last(table))
    notes = repaired(table)
    assert "another write may have added the file group" in notes
    assert "Restore its completed file from a copy" in notes
    assert Table(store).verify().problems == {"completion-lost": 1}


def test_a_write_of_version_6_that_ended_after_the_overwrite_began() -> None:
    """Its requested time is earlier, and the timeline does not have its completion time."""
    table = made(rows("a"), version=6)
    store = table.view().store

    def overwrite() -> None:
        Table(store).insert_overwrite(rows("b"))

    with once_at(Step.WRITTEN, overwrite):
        table.bulk_insert(rows("late"))
    check(table, [("b", "sf", 1), ("late", "sf", 1)])
    tear_last(table)
    assert "another write may have added the file group" in repaired(table)
    assert Table(store).verify().problems == {"completion-lost": 1}


Overwrite = Callable[[Table], object]


@pytest.mark.parametrize(
    ("overwrite", "left"),
    [
        (lambda table: table.insert_overwrite(rows(), partitions=["city=nyc"]), [("a", "sf", 1)]),
        (
            lambda table: table.insert_overwrite(rows("b"), partitions=["city=nyc", "city=sf"]),
            [("b", "sf", 1)],
        ),
    ],
    ids=["without rows", "with rows"],
)
@pytest.mark.parametrize("version", [6, 9])
def test_partitions_without_new_rows_are_replaced(overwrite: Overwrite, left: Rows, version: int) -> None:
    table = made(rows("a"), rows("n", city="nyc"), version=version)
    overwrite(table)
    check(table, left)
    tear_last(table)
    repaired(table)
    check(table, left)


def test_a_lost_completed_file() -> None:
    """A later write proves that the overwrite completed."""
    table = made(rows("a"), rows("n", city="nyc"), rows("o", city="oslo"))
    table.insert_overwrite(rows("b"), partitions=["city=nyc"])
    table.upsert(rows("b", x=2))
    expected = [("b", "sf", 2), ("o", "oslo", 1)]
    check(table, expected)
    instant = next(found for found in table.timeline if found.action.value == "replacecommit")
    table.view().store.delete(path_of(table, instant.requested_time, "replacecommit"))
    repaired(table)
    check(table, expected)


def test_an_overwrite_without_a_plan_that_wrote_no_file_is_not_guessed() -> None:
    table = made(rows("a"), rows("n", city="nyc"))
    table.insert_overwrite(rows(), partitions=["city=nyc"])
    forget_plan(table, tear_last(table))
    assert "it may have replaced some of the file groups" in repaired(table)
    assert Table(table.view().store).verify().problems == {"completion-lost": 1}


def test_an_overwrite_without_a_plan_is_written_anew_with_a_note() -> None:
    table = made(rows("a"), rows("n", city="nyc"))
    table.insert_overwrite(rows("b"))
    forget_plan(table, tear_last(table))
    assert "partitions that it replaced and has no rows of, if any, are unknown" in repaired(table)
    check(table, [("b", "sf", 1), ("n", "nyc", 1)])


def test_two_damaged_writes_are_written_anew_in_their_order() -> None:
    """The overwrite replaced the file group of the write before it, whose completed file is damaged too."""
    table = made(rows("a"))
    second = table.bulk_insert(rows("b")).instant
    table.insert_overwrite(rows("c"))
    tear_last(table)
    assert second is not None
    store, path = table.view().store, path_of(table, second, "commit")
    store.replace(path, store.read(path)[:-30])
    assert Table(store).verify().problems == {"completion-lost": 2}
    Table(store).repair(dry_run=False)
    check(table, [("c", "sf", 1)])


def test_an_overwrite_that_is_not_guessed_can_be_taken_back() -> None:
    table = made(rows("a"), rows("n", city="nyc"))
    table.insert_overwrite(rows(), partitions=["city=nyc"])
    instant = tear_last(table)
    forget_plan(table, instant)
    assert f't.rollback("{instant}")' in repaired(table)
    store = table.view().store
    store.delete(path_of(table, instant, "replacecommit"))
    Table(store).rollback(instant)
    check(table, [("a", "sf", 1), ("n", "nyc", 1)])
