"""Change data that was logged equals what the file slices tell, and is there for one commit longer."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.read.cdc import read_cdc
from hoodie.read.cdc_plan import CdcPlan, plan_cdc
from hoodie.table import Table
from tests.support.tables import made_once, new_table

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("tags", pa.list_(pa.string()))])
KEEP_TWO = {"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "2"}


def rows(*found: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": v, "tags": [key, None]} for key, v in found], SCHEMA)


@made_once
def logging_table(mode: str = "DATA_BEFORE_AFTER") -> Table:
    """An insert of three rows, an update and an insert, a delete."""
    table = new_table(
        SCHEMA,
        rows(("a", 1), ("b", 1), ("c", 1)),
        rows(("a", 2), ("d", 2)),
        properties={"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode},
    )
    table.delete(["b"])
    return table


def events(plan: CdcPlan, *, flat: bool = False) -> list[str]:
    return sorted(map(repr, read_cdc(plan, flat=flat).to_pylist()))


def from_slices(plan: CdcPlan) -> CdcPlan:
    return replace(plan, changes=tuple(replace(change, logged={}) for change in plan.changes))


@pytest.mark.parametrize("mode", ["DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"])
def test_logged_changes_are_those_of_the_slices(mode: str) -> None:
    table = logging_table(mode)
    plan = plan_cdc(table.view(), None, None)
    logged = [bool(change.logged) for change in plan.changes]
    assert logged == [False, *[mode == "DATA_BEFORE_AFTER"] * 2]
    for flat in (False, True):
        assert events(plan, flat=flat) == events(from_slices(plan), flat=flat)
    assert len(events(plan)) == 6


def test_a_log_with_other_columns_than_the_table_is_not_read() -> None:
    table = logging_table()
    table.upsert(rows(("a", 5)).append_column("more", pa.array(["x"])))
    plan = plan_cdc(table.view(), None, None)
    assert [bool(change.logged) for change in plan.changes] == [False, True, True, True]
    found = events(plan)
    assert found == events(from_slices(plan))
    assert sum("'more': 'x'" in event for event in found) == 1


def test_logged_changes_outlive_the_state_before_their_commit() -> None:
    assert [len(readable_commits(is_logging)) for is_logging in ("false", "true")] == [1, 2]


def readable_commits(is_logging: str) -> list[str]:
    """Return the commits of a cleaned table whose changes can be read."""
    properties = {"hoodie.table.cdc.enabled": is_logging, **KEEP_TWO}
    table = new_table(SCHEMA, properties=properties)
    done = [table.upsert(rows(("a", n), ("b", n))).instant for n in range(5)]
    assert table.clean().instant
    found = []
    for since, instant in pairwise(done):
        try:
            changes: Any = table.changes(since=since, until=instant, mode="cdc")
        except hoodie.HistoryLostError:
            continue
        assert sorted(changes["op"].to_pylist()) == ["u", "u"]
        found.append(instant)
    return found


def test_a_damaged_log_is_an_error() -> None:
    table = logging_table()
    (last,) = plan_cdc(table.view(), table.history().to_pylist()[1]["instant"], None).changes
    store = table.view().store
    (path,) = last.logged
    store.replace(path, store.read(path)[:-4])
    with pytest.raises(hoodie.CorruptFileError, match=r"\.cdc"):
        table.changes(mode="cdc")


def test_a_key_that_is_held_twice_is_updated_not_inserted() -> None:
    """`insert` looks up no keys; a later upsert changes all rows of the key."""
    table = new_table(SCHEMA)
    table.insert(rows(("a", 1)))
    table.insert(rows(("a", 2)))
    since = table.timeline.completed().instants[-1].requested_time
    table.upsert(rows(("a", 5)))
    found = read_cdc(plan_cdc(table.view(), since, None), flat=False).to_pylist()
    assert {event["op"] for event in found} == {"u"}
    assert len(found) == table.count()
