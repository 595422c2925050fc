"""An instant of the timeline is taken wherever a requested time is."""

from __future__ import annotations

from typing import Any

from tests.support.tables import new_table, rows, values_of


def test_an_instant_of_the_timeline_is_its_requested_time() -> None:
    t: Any = new_table(rows("a").schema, rows("a"))
    first = t.timeline.completed().latest()
    assert first is not None
    t.savepoint(first)
    t.upsert(rows("b"))
    second = t.timeline.completed().latest()
    assert second is not None
    t.upsert(rows("c"))
    assert [values_of(t, "id", as_of=instant) for instant in (first, second)] == [[("a",)], [("a",), ("b",)]]
    assert t.changes(since=first, until=second)["id"].to_pylist() == ["b"]
    assert t.inspect.instant(second) == t.inspect.instant(second.requested_time)
    t.rollback(t.timeline.completed().latest())
    t.restore(first)
    t.delete_savepoint(first)
    assert values_of(t, "id") == [("a",)]
