"""Options of compactions: what is wrong with them is told before anything is touched."""

from __future__ import annotations

import pytest

from hoodie.errors import InvalidConfigError
from hoodie.table import Table
from tests.support.tables import trips_store


def logged_table() -> Table:
    """A table with log files, of which nothing is planned."""
    return Table(trips_store({"a": (0, "sf")}, {"a": (1, "sf")}, table_type="merge_on_read"))


def test_a_log_compaction_needs_blocks() -> None:
    with pytest.raises(InvalidConfigError, match="blocks_min is 0: expected at least 1"):
        logged_table().schedule_log_compaction(blocks_min=0)


def test_a_table_property_as_it_is_stored_is_no_contradiction() -> None:
    table = logged_table()
    same = {"hoodie.table.type": "MERGE_ON_READ"}
    instant = table.schedule_compaction(properties=same)
    assert table.compact(properties=same).instant == instant
