"""Tables that were switched to an index which the rows of their earlier states do not obey."""

from __future__ import annotations

from typing import Any

from hoodie.config import indexes
from hoodie.index import index_kind
from hoodie.table import Table
from tests.support.tables import PLAIN, new_table, rows

KEYS = tuple(f"k{number}" for number in range(12))


def with_other_buckets(*, by: str = "simple", saved: bool = False, **options: Any) -> tuple[Table, str]:
    """A table with four buckets and one row, and the instant at which it had two buckets and the rows of `KEYS`.

    It had the index `by` between. `saved`: the instant has a savepoint.
    """
    properties = {indexes.BUCKET_COUNT.key: "2", indexes.RECORD_INDEX_BUCKETS_MIN.key: "2"}
    table = new_table(PLAIN, rows(*KEYS), index="bucket", properties=properties, **options)
    first = table.timeline.writes().instants[-1].requested_time
    if saved:
        table.savepoint()
    table.delete(rows(*KEYS))
    table.index.switch(by)
    table.index.switch("bucket", buckets=4)
    table.upsert(rows("new", ts=2))
    return table, first


def with_rows_elsewhere(index: str = "global_simple", *, saved: bool = False, **options: Any) -> tuple[Table, str, str]:
    """A table with the index `simple`, and two instants of before, when it had `index`: as made, and with a row moved.

    Row `a` of the second instant is in the partition `sf` and has the city `la`. `saved`: it has a savepoint.
    """
    moves = index_kind(index).moves_option
    assert moves is not None
    properties = {moves.key: "false", indexes.RECORD_INDEX_BUCKETS_MIN.key: "2"}
    made = {"partition_by": "city", "index": index, "properties": properties, **options}
    table = new_table(PLAIN, rows("a", "b"), rows("a", ts=2, city="la"), **made)
    first, moved = (found.requested_time for found in table.timeline.writes())
    if saved:
        table.savepoint()
    table.delete(rows("a"))
    table.index.switch("simple", key_keeps_partition=True)
    table.upsert(rows("c", city="la"))
    return table, first, moved
