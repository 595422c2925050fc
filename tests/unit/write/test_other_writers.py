"""What another writer does between our read and our commit, and what it has pending: found, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from hoodie import CommitConflictError, Table, UnsupportedError, WriteResult
from hoodie.commit.steps import Step
from hoodie.files.staging import staged
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.service_metadata import ClusteringGroup, ClusteringPlan, RequestedReplaceMetadata, SliceInfo
from hoodie.format.table import table_keys
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from hoodie.write.files import task_changes
from tests.support.steps import ONE_TRY, begin, once_at
from tests.support.tables import new_table, table_of, values_of

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("p", pa.string())])


def rows(*values: tuple[str, int, str]) -> pa.Table:
    return table_of(SCHEMA, *values)


@pytest.fixture
def table() -> Table:
    return new_table(SCHEMA, rows(("a", 1, "x"), ("b", 2, "x"), ("c", 3, "y")), partition_by="p")


def values(table: Table) -> dict[str, int]:
    return dict(values_of(table, "id", "v"))


def test_new_keys_are_inserted_although_known_ones_are_stored_several_times(table: Table) -> None:
    for _ in range(3):
        table.bulk_insert(rows(("a", 1, "x"), ("b", 1, "x")))
    result = table.upsert(rows(("a", 7, "x"), ("b", 7, "x"), ("new", 7, "x")))
    assert result.inserted == 1
    assert values(table)["new"] == 7


@pytest.mark.parametrize("operation", ["update", "delete_where"])
def test_what_came_after_the_read_is_a_conflict_or_is_read_again(table: Table, operation: str) -> None:
    """The other writer gives the row another value: an update starts from it, and it matches `v = 1` no more."""

    def change(**options: Any) -> WriteResult:
        if operation == "update":
            return table.update({"v": "v + 1"}, where="id = 'a'", **options)
        return table.delete_where("v = 1", **options)

    with once_at(Step.PREPARED, lambda: table.upsert(rows(("a", 100, "x")))), pytest.raises(CommitConflictError):
        change(properties=ONE_TRY)
    assert values(table)["a"] == 100
    table.upsert(rows(("a", 1, "x")))
    with once_at(Step.PREPARED, lambda: table.upsert(rows(("a", 100, "x")))):
        result = change()
    assert (result.deleted, values(table)["a"]) == (0, 101 if operation == "update" else 100)
    assert result.notes[0].startswith("retried once: ")


@pytest.mark.parametrize("write", ["upsert", "delete_partitions"])
def test_a_column_added_meanwhile_is_not_taken_back(table: Table, write: str) -> None:
    wider = rows(("c", 4, "y")).append_column("more", pa.array([1], pa.int64()))
    changes: dict[str, Callable[[], object]] = {
        "upsert": partial(table.upsert, rows(("a", 5, "x"))),
        "delete_partitions": partial(table.delete_partitions, ["p=x"]),
    }
    with once_at(Step.PREPARED, lambda: table.upsert(wider)), pytest.raises(CommitConflictError, match="schema"):
        changes[write]()
    assert "more" in table.schema.names
    assert len(values(table)) == 3


def test_file_groups_that_are_being_clustered_are_not_updated(table: Table) -> None:
    view = table.view()
    piece = next(found for found in list_slices(view) if found.partition_path == "p=x")
    group = ClusteringGroup(slices=(SliceInfo(file_id=piece.file_id, partition_path=piece.partition_path),))
    plan = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=ClusteringPlan(input_groups=(group,)))
    begin(table, Action.CLUSTERING, plan.to_bytes(), only_requested=True)
    with pytest.raises(CommitConflictError, match="clustered"):
        table.upsert(rows(("a", 5, "x")))
    table.upsert(rows(("c", 5, "y"), ("new", 5, "x")))
    homes = {found.file_id for found in list_slices(table.view()) if found.partition_path == "p=x"}
    assert len(homes) == 2, "an insert may not go to a file group that is being clustered"
    assert values(table) == {"a": 1, "b": 2, "c": 5, "new": 5}


@pytest.mark.parametrize("action", [Action.RESTORE, Action.INDEXING])
def test_writes_wait_for_a_restore_and_an_index_build(table: Table, action: Action) -> None:
    begin(table, action)
    with pytest.raises(UnsupportedError, match=str(action)):
        table.upsert(rows(("a", 5, "x")))
    assert len(table.timeline.writes()) == 1


def test_a_handle_sees_a_metadata_table_that_was_built_anew(table: Table) -> None:
    assert len(values(table)) == 3
    store = table.view().store
    update_table_config(store, {table_keys.METADATA_PARTITIONS: None})
    store.delete_folder(".hoodie/metadata")
    assert len(values(table)) == 3
    Table(store, spark=False).upsert(rows(("d", 4, "z"), ("e", 5, "x")))
    assert len(values(table)) == 5


def test_a_share_of_inserts_is_written_in_parts(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_changes, "_PART_BYTES", 2000)
    monkeypatch.setattr(staged, "_HASHED_BYTES_MIN", 500)
    many = rows(*((f"k{number % 300}", number, "x") for number in range(600)))
    result = table.upsert(pa.concat_tables([many, rows(("a", 50, "x"))]))
    assert (result.inserted, result.updated) == (300, 1)
    assert values(table) == {"a": 50, "b": 2, "c": 3, **{f"k{number}": number + 300 for number in range(300)}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (table_keys.ORDERING_FIELDS, "v"),
        (table_keys.HIVE_STYLE, "false"),
        (table_keys.MERGE_MODE, "CUSTOM"),
    ],
)
def test_rows_that_were_prepared_by_rules_of_before_are_refused(table: Table, name: str, value: str) -> None:
    change = once_at(Step.PREPARED, lambda: update_table_config(table.view().store, {name: value}))
    with change, pytest.raises(CommitConflictError, match=r"the properties of .* were changed"):
        table.upsert(rows(("a", 5, "x")))
    assert len(table.timeline.pending()) == 0
