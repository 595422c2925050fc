"""`changes` with columns and conditions: the rows and the images of `changes` without them, and fewer files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.read.cdc_plan import plan_cdc
from hoodie.read.changes import plan_batch
from hoodie.records.condition import Condition
from tests.support.rows import assert_same_rows
from tests.support.tables import new_table, table_of

ST = pa.struct([("a", pa.int64()), ("b", pa.string())])
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("st", ST)])
Story = tuple[hoodie.Table, str]
LOGGED = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER"}


@pytest.fixture(scope="module", params=["cow", "mor", "cow logged", "mor logged"])
def story(request: pytest.FixtureRequest) -> Story:
    """A table, and the instant of its first commit."""
    kind, _, logged = request.param.partition(" ")
    t = new_table(
        SCHEMA,
        table_of(SCHEMA, ("a", "x", 1, {"a": 1, "b": "q"}), ("b", "x", 2, None), ("c", "y", 3, {"a": 3, "b": None})),
        partition_by="p",
        type=kind,
        properties=LOGGED if logged else {},
    )
    first = t.timeline.instants[0].requested_time
    t.upsert(
        table_of(SCHEMA, ("a", "x", 10, {"a": 7, "b": "q"}), ("b", "x", 2, {"a": 2, "b": "n"}), ("d", "z", 4, None))
    )
    t.delete([{"id": "c", "p": "y"}])
    return t, first


CONDITIONS = ["v < 2", "v >= 10", "st IS NULL", "st.b = 'n'", "p = 'y'", "p IN ('x', 'z') AND st.a IS NULL", "false"]


def _matches(image: dict[str, Any] | None, where: str) -> bool:
    if image is None:
        return False
    table = pa.Table.from_pylist([image], SCHEMA)
    return bool(Condition.parse(where).row_filter(SCHEMA).matching(table).num_rows)


def test_a_change_is_returned_if_an_image_matches(story: Story) -> None:
    t, first = story
    everything = t.changes(first, mode="cdc")
    assert everything.num_rows == 4
    for where in CONDITIONS:
        kept = [_matches(row["before"], where) or _matches(row["after"], where) for row in everything.to_pylist()]
        expected = everything.filter(pa.array(kept))
        assert_same_rows(t.changes(first, mode="cdc", where=where), expected)
        images = t.changes(first, mode="cdc", where=where, columns=["st.a", "id"])
        assert images.schema.field("after").type == pa.struct([("a", pa.int64()), ("id", pa.string())])
        assert [row and (row["a"], row["id"]) for row in images["after"].to_pylist()] == [
            row and (row["st"] and row["st"]["a"], row["id"]) for row in expected["after"].to_pylist()
        ]
        flat = t.changes(first, mode="cdc", where=where, columns=["v", "id"], flat=True)
        assert flat.schema.names == ["op", "ts_ms", "before_v", "before_id", "after_v", "after_id"]
        befores = pc.struct_field(expected["before"].combine_chunks(), "v").to_pylist()
        assert sorted(map(str, flat["before_v"].to_pylist())) == sorted(map(str, befores))


def test_changed_rows_match_as_of_the_end(story: Story) -> None:
    t, first = story
    everything, until = t.changes(first), t.changes_since(first).until
    for where in CONDITIONS:
        matching = Condition.parse(where).row_filter(everything.schema).matching(everything)
        assert_same_rows(t.changes(first, where=where), matching)
        assert_same_rows(t.changes(first, where=where, columns=["v", "ID"]), matching.select(["v", "id"]))
        found = t.changes_since(first, where=where)
        assert_same_rows(found.rows, matching)
        assert found.until == until


def test_files_that_cannot_match_are_not_read(story: Story) -> None:
    t, first = story
    view, where = t.view(), Condition.parse("p = 'z'")
    assert len(plan_batch(view, first, None).scan.slices) == 3
    assert [found.partition_path for found in plan_batch(view, first, None, where=where).scan.slices] == ["p=z"]
    assert len(plan_cdc(view, first, None).changes) == 3
    plan = plan_cdc(view, first, None, where=where, columns="v")
    assert [change.partition_path for change in plan.changes] == ["p=z"]
    assert plan.read.names == ["p", "v"]


@pytest.mark.parametrize(
    ("how", "error", "reason"),
    [
        ({"where": "nosuch = 1"}, hoodie.SchemaMismatchError, "no column 'nosuch'"),
        ({"where": "_hoodie_record_key = 'a'"}, hoodie.SchemaMismatchError, "no column"),
        ({"columns": ["v", "nosuch"]}, hoodie.SchemaMismatchError, "nosuch"),
        ({"columns": []}, hoodie.InvalidConfigError, "selects no columns"),
        ({"columns": ["st.a", "st.a"]}, hoodie.InvalidConfigError, "twice"),
        ({"where": "v ="}, hoodie.InvalidConfigError, "expression"),
        ({"where": "size(st) = 1"}, hoodie.UnsupportedError, "SIZE"),
    ],
)
def test_wrong_columns_and_conditions_are_refused(
    story: Story, how: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        story[0].changes(story[1], mode="cdc", **how)
