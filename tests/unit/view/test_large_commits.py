"""Commits that wrote very many files: their write stats are decoded only as far as they are needed."""

from __future__ import annotations

import pyarrow as pa

import hoodie
from hoodie.view.table_view import TableView
from hoodie.write.plan import known_record_bytes
from tests.support.tables import new_table

_FILES = 700


def test_reads_and_writes_do_not_decode_a_large_commit() -> None:
    numbers = range(4 * _FILES)
    rows = pa.table({"id": [str(n) for n in numbers], "p": [n % _FILES for n in numbers]})
    made = new_table(rows.schema, partition_by="p")
    instant = made.bulk_insert(rows).instant

    table = hoodie.open(made.path)
    view = table.view()
    [commit] = view.completed_writes()
    assert view.schema().arrow.names == ["id", "p"]
    estimate = known_record_bytes(view, {})
    assert estimate is not None
    assert table.to_arrow(where="p = 3").num_rows == 4
    table.upsert(rows.slice(3, 1))
    assert view.state.commits.get(instant) is None

    assert _exact_bytes(view) * 0.9 < estimate < _exact_bytes(view) * 1.1
    assert len([*view.commit_metadata(commit).write_stats()]) >= _FILES


def _exact_bytes(view: TableView) -> float:
    stats = [*view.commit_metadata(view.completed_writes()[0]).write_stats()]
    return sum(stat.file_size_bytes for stat in stats) / sum(stat.num_writes for stat in stats)
