"""Options of compactions: what is wrong with them is told before anything is touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.errors import InvalidConfigError
from hoodie.table import Table
from tests.support.tables import contents, trips_store


def logged_table() -> Table:
    """A table with log files, of which nothing is planned."""
    return Table(trips_store({"a": (0, "sf")}, {"a": (1, "sf")}, table_type="merge_on_read"))


WRONG_OPTIONS = {
    "unknown": ({"hoodie.compaction.target.iox": "1"}, r"did you mean 'hoodie\.compaction\.target\.io'"),
    "no number": ({"hoodie.compaction.target.io": "much"}, "target.io='much'"),
    "table property": ({"hoodie.table.type": "COPY_ON_WRITE"}, "fixed when the table is created"),
    "no text": (
        {"hoodie.compaction.target.io": None},
        r"properties: expected .*'hoodie\.compaction\.target\.io': None",
    ),
}


@pytest.mark.parametrize(("properties", "message"), WRONG_OPTIONS.values(), ids=list(WRONG_OPTIONS))
def test_wrong_options_are_refused_before_anything_is_touched(properties: dict[str, str], message: str) -> None:
    table = logged_table()
    table.schedule_compaction()
    before = contents(table.view().store)
    calls: list[Callable[[], object]] = [
        lambda: table.schedule_compaction(properties=properties),
        lambda: table.compact(properties=properties),
        lambda: table.compactor(properties=properties),
        lambda: table.services(properties=properties),
    ]
    for call in calls:
        with pytest.raises(InvalidConfigError, match=message):
            call()
    assert contents(table.view().store) == before


def test_a_log_compaction_needs_blocks() -> None:
    with pytest.raises(InvalidConfigError, match="blocks_min is 0: expected at least 1"):
        logged_table().schedule_log_compaction(blocks_min=0)


def test_a_compactor_with_an_unknown_option_is_not_made() -> None:
    with pytest.raises(InvalidConfigError, match="unknown option"):
        logged_table().compactor(properties={"hoodie.compaction.stratgy": "day_based"})


def test_a_table_property_as_it_is_stored_is_no_contradiction() -> None:
    table = logged_table()
    same = {"hoodie.table.type": "MERGE_ON_READ"}
    instant = table.schedule_compaction(properties=same)
    assert table.compact(properties=same).instant == instant
