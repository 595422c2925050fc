"""A plain JVM writer goes on with our partitioned record index, a new data partition among its rows; then we do."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from hoodie.index.record.state import has_partitioned_index
from tests.interop.judges import HIVE, Jvm, create_trips
from tests.support.index_check import check_index
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
_rows = partial(table_of, SCHEMA)


def test_writers_take_turns(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, index="partitioned_record", spark=False)
    table.upsert(_rows(("a", 1, "sf"), ("b", 1, "sf"), ("c", 1, "sf"), ("a", 1, "n_y"), ("d", 1, "n_y")))
    jvm.write_trips(
        _rows(("a", 2, "sf"), ("e", 2, "sf"), ("d", 2, "n_y"), ("z", 2, "new")), path, operation="upsert", options=HIVE
    )
    assert has_partitioned_index(table.view())
    check_index(table.view())
    again = table.upsert(_rows(("e", 3, "sf"), ("f", 3, "sf"), ("z", 3, "new")))
    assert (again.inserted, again.updated) == (1, 2)
    assert table.delete(pa.table({"id": ["b"], "city": ["sf"]})).deleted == 1
    check_index(table.view())
    expected = _rows(
        ("a", 2, "sf"),
        ("c", 1, "sf"),
        ("e", 3, "sf"),
        ("f", 3, "sf"),
        ("a", 1, "n_y"),
        ("d", 2, "n_y"),
        ("z", 3, "new"),
    )
    assert_same_rows(table.to_arrow(SCHEMA.names), expected, key=["id", "city"])
    assert_same_rows(jvm.read(path).select(SCHEMA.names), expected, key=["id", "city"])
