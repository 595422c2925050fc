"""A metadata table that cleaned and archived itself, in the hands of the JVM, and back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.files.table_properties import read_table_config
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.paths import METADATA_HISTORY
from hoodie.storage import LocalStore
from hoodie.timeline import Action, Timeline, TimelineArchive
from tests.interop.judges import HIVE, Jvm, create_trips, read_with_hudi_rs
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
COMMITS = 55
INSERTS = 12
"""Commits after which only updates come: buckets of the record index lie quiet while their compaction grows old."""
WITH_INDEX = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}

Rows = dict[str, tuple[int, str]]


def _batch(rows: Rows) -> pa.Table:
    return pa.table(
        {"id": list(rows), "ts": [ts for ts, _ in rows.values()], "city": [city for _, city in rows.values()]},
        schema=SCHEMA,
    )


def _metadata(path: Path) -> MetadataFolder:
    store = LocalStore(str(path))
    return MetadataFolder(store, read_table_config(store))


def _count(timeline: Timeline, action: Action) -> int:
    return sum(found.is_completed and found.action is action for found in timeline)


def _agree(jvm: Jvm, path: Path, rows: Rows) -> None:
    expected = _batch(rows)
    assert_same_rows(hoodie.open(path).to_arrow(columns=SCHEMA.names), expected)
    assert_same_rows(jvm.read(path, SCHEMA.names, options=WITH_INDEX), expected)
    assert_same_rows(read_with_hudi_rs(path).select(SCHEMA.names), expected)


def _jvm_upsert(jvm: Jvm, path: Path, rows: Rows, *, column_stats: bool) -> None:
    options = {
        **WITH_INDEX,
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.index.column.stats.enable": str(column_stats).lower(),
        **HIVE,
    }
    jvm.write_trips(_batch(rows), path, options=options)


def test_services_by_us_and_by_the_jvm(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA)
    rows: Rows = {}
    for number in range(COMMITS):
        batch = {f"k{number % 5}": (number, "sf")}
        if number < INSERTS:
            batch[f"n{number}"] = (number, "nyc")
        table.upsert(_batch(batch))
        rows |= batch
    folder = _metadata(path)
    ours, archived = folder.timeline(), TimelineArchive(folder.store, METADATA_HISTORY).instants()
    assert _count(ours, Action.CLEAN) >= 1
    assert len(archived) > 10

    # The JVM sees the same instants, active and archived.
    client = jvm.meta_client(path / ".hoodie" / "metadata")
    assert client.getActiveTimeline().countInstants() == len(ours)
    theirs = client.getArchivedTimeline().getInstants()
    assert [(found.requestedTime(), found.getAction(), found.getCompletionTime()) for found in theirs] == [
        (found.requested_time, found.action, found.completion_time) for found in archived
    ]
    _agree(jvm, path, rows)

    # It knows the keys by the index, also beside a new partition, which it fills at an instant older than all that is
    # archived. Its own services run on what ours left.
    for number in range(2):
        batch = {
            f"k{number}": (1000, "sf"),
            **{f"n{key}": (1000 + number, "nyc") for key in range(INSERTS)},
            f"j{number}": (1, "sf"),
        }
        _jvm_upsert(jvm, path, batch, column_stats=number == 0)
        if number == 0:
            assert "column_stats" in folder.partitions()
        rows |= batch
        _agree(jvm, path, rows)

    for number in range(12):
        batch = {f"k{number % 5}": (2000 + number, "sf"), f"m{number}": (number, "nyc")}
        hoodie.open(path).upsert(_batch(batch))
        rows |= batch
    _agree(jvm, path, rows)
    assert _count(folder.timeline(), Action.COMMIT) >= 2
