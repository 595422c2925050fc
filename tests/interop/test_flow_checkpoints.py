"""Places of ingestions in commits: JVM Hudi's own class reads ours, and a flow goes on behind commits of the JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.format.instants.ingest_checkpoint import KEYS
from hoodie.ingest.source import Batch, Request
from tests.interop.judges import HIVE, Jvm, create_trips
from tests.interop.shared_trips import FEW_BUCKETS, SCHEMA, TYPES, trips

PLACE, _, _, PLACE_V2, _, _ = KEYS


class Fives:
    """Five trips a batch; a place is such as `events,0:5`, or a time of version 2."""

    def __init__(self, until: int, version: int = 1) -> None:
        self.until, self.place_version = until, version
        self.began: list[str | None] = []

    def plan(self, request: Request) -> Batch | None:
        self.began.append(request.after)
        first = 0 if request.after is None else int(request.after.rpartition(":")[2])
        if first >= self.until:
            return None
        rows = trips(range(first, first + 5), first)
        return Batch(place=f"events,0:{first + 5}", read=lambda: rows)


def place_by_jvm(jvm: Jvm, path: Path) -> tuple[str, str]:
    """The place of the newest commit, and the class, as JVM Hudi's own code finds them."""
    timeline = jvm.meta_client(path).getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
    metadata = timeline.readCommitMetadata(timeline.lastInstant().get())
    utils: Any = jvm.spark._jvm.org.apache.hudi.common.table.checkpoint.CheckpointUtils  # type: ignore[union-attr]
    found = utils.getCheckpoint(metadata)
    return found.getCheckpointKey(), found.getClass().getSimpleName()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("table_version", [6, 8, 9])
@pytest.mark.parametrize("table_type", TYPES)
def test_both_go_on_behind_each_others_commits(
    jvm: Jvm, tmp_path: Path, table_type: str, table_version: int, version: int
) -> None:
    path = tmp_path / "table"
    create_trips(path, SCHEMA, type=table_type, table_version=table_version, spark=False, properties=FEW_BUCKETS)
    result = hoodie.ingest(Fives(10, version), path, spark=False)
    assert result.place == "events,0:10"
    assert place_by_jvm(jvm, path) == ("events,0:10", f"StreamerCheckpointV{version}")
    key, prefix = (PLACE, "deltastreamer.") if version == 1 else (PLACE_V2, "streamer.")
    options = {
        **HIVE,
        "hoodie.datasource.write.commitmeta.key.prefix": prefix,
        key: "events,0:15",
    }
    jvm.write_trips(
        trips(range(10, 15), 10),
        path,
        table_type=table_type.upper(),
        table_version=table_version,
        options=options,
    )
    # Another writer of the JVM, which has no place.
    jvm.write_trips(
        trips(range(0, 2), 99), path, table_type=table_type.upper(), table_version=table_version, options=HIVE
    )
    source = Fives(20, version)
    hoodie.ingest(source, path, spark=False)
    assert source.began[0] == "events,0:15"
    assert place_by_jvm(jvm, path) == ("events,0:20", f"StreamerCheckpointV{version}")
    assert sorted(jvm.read(path, ["id"])["id"].to_pylist()) == [f"k{number:03}" for number in range(20)]
