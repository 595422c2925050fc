"""No value in a file of a table leads a read, a write or a delete out of the table's folder, or to its own files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import (
    CleanerPlan,
    CleanFileInfo,
    ClusteringGroup,
    ClusteringPlan,
    CompactionOperation,
    CompactionPlan,
    InstantInfo,
    RequestedReplaceMetadata,
    SliceInfo,
    rollback_plan,
)
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.kinds.files import FilesKind
from tests.support.tables import FEW_BUCKETS, PLAIN, new_table, table_of

FILE_ID = "0a1b2c3d-0000-0000-0000-000000000000-0"
FILE = f"{FILE_ID}_0-0-0_20200101000000000.parquet"
EARLY, LATER = "20200101000000000", "20990101000000000"


def rows(keys: str, ts: int) -> pa.Table:
    return table_of(PLAIN, *((key, ts, ("sf", "nyc")[place % 2]) for place, key in enumerate(keys)))


@dataclass(frozen=True)
class Place:
    """A folder with a table in it, and files around it and in it that nobody may touch.

    The methods write hostile values; `{outside}` and `{table}` in a path stand for the two folders.
    """

    path: Path
    outside: Path

    def at(self, path: str) -> str:
        return path.format(outside=self.outside, table=self.path)

    def timeline(self, name: str, content: bytes = b"") -> None:
        (self.path / ".hoodie" / "timeline" / name).write_bytes(content)

    def properties(self, **changes: str) -> None:
        file = self.path / ".hoodie" / "hoodie.properties"
        changes = {f"hoodie.{name.replace('__', '.')}": value for name, value in changes.items()}
        lines = [line for line in file.read_text().splitlines() if line.partition("=")[0] not in changes]
        file.write_text("\n".join([*lines, *(f"{name}={value}" for name, value in changes.items())]) + "\n")

    def rollback(self, *named: str, of: str = EARLY, action: str = "commit") -> None:
        pairs = [("", [self.at(path) for path in named])] if named else []
        plan = rollback_plan(InstantInfo(commit_time=of, action=action), pairs)
        self.timeline(f"{LATER}.rollback.requested", plan.to_bytes())

    def markers(self, line: str) -> None:
        self.timeline(f"{EARLY}.commit.requested")
        self.timeline(f"{EARLY}.inflight")
        folder = self.path / ".hoodie" / ".temp" / EARLY
        folder.mkdir(parents=True)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        (folder / "MARKERS0").write_text(f"{self.at(line)}.marker.CREATE")

    def commit(self, path: str, partition: str) -> None:
        """The newest commit says that it wrote another file, and replaced file groups of another partition."""
        timeline = self.path / ".hoodie" / "timeline"
        file = max(found for found in timeline.iterdir() if found.name.endswith("commit"))
        metadata = CommitMetadata.parse(file.read_bytes())
        (name, stats), *rest = metadata.partition_to_write_stats.items()
        hostile = replace(stats[0], path=self.at(path), partition_path=partition)
        changed = replace(metadata, partition_to_write_stats={**dict(rest), name: stats, partition: (hostile,)})
        file.write_bytes(changed.to_bytes(9))

    def compaction(self, partition: str, base: str, log: str) -> None:
        operation = CompactionOperation(
            base_instant_time=EARLY,
            file_id=FILE_ID,
            partition_path=partition,
            data_file_path=self.at(base),
            delta_file_paths=(self.at(log),),
        )
        self.timeline(f"{LATER}.compaction.requested", CompactionPlan(operations=(operation,)).to_bytes())

    def clustering(self, partition: str, base: str) -> None:
        piece = SliceInfo(file_id=FILE_ID, partition_path=partition, data_file_path=self.at(base))
        plan = ClusteringPlan(input_groups=(ClusteringGroup(slices=(piece,)),))
        content = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan).to_bytes()
        self.timeline(f"{LATER}.clustering.requested", content)

    def clean(self, *named: str) -> None:
        paths = tuple(CleanFileInfo(file_path=self.at(path)) for path in named)
        plan = CleanerPlan(
            policy="KEEP_LATEST_COMMITS",
            file_paths_to_be_deleted_per_partition={"../../outside": paths, "sf": paths},
            partitions_to_be_deleted=("../../outside", ".hoodie", ""),
        )
        self.timeline(f"{LATER}.clean.requested", plan.to_bytes())

    def listing(self, partition: str, name: str) -> None:
        """The metadata table lists another file, in another partition."""
        original = FilesKind.rows_of

        def rows_of(kind: FilesKind, changes: MetadataChanges, *given: Any) -> Sequence[FileGroupDelta]:
            files = {**changes.files_added, partition: {name: 8}}
            return original(kind, replace(changes, files_added=files), *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FilesKind, "rows_of", rows_of)
            hoodie.open(self.path, spark=False).upsert(rows("cd", 3))

    def manifest(self) -> None:
        folder = self.path / ".hoodie" / "timeline" / "history"
        files = [{"fileName": f"../../../../../outside/{'0' * 17}_{'9' * 17}_0.parquet", "fileLen": 8}]
        (folder / "manifest_1").write_text(json.dumps({"files": files}))
        (folder / "_version_").write_text("1")

    def canaries(self) -> dict[str, bytes]:
        """All files outside of the table, and whether its properties are there."""
        root = self.path.parent.parent
        found = {str(f): f.read_bytes() for f in root.rglob("*") if f.is_file() and self.path not in f.parents}
        properties = self.path / ".hoodie" / "hoodie.properties"
        return found | {"properties exist": str(properties.exists()).encode()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    path, outside = tmp_path / "tables" / "t", tmp_path / "outside"
    kind = {"partition_by": "city", "ordering": "ts", "type": "merge_on_read", "properties": FEW_BUCKETS}
    new_table(PLAIN, rows("abcd", 1), rows("ab", 2), path=path, **kind)
    outside.mkdir()
    for canary in (outside / FILE, outside / "hoodie.properties", path.parent / FILE):
        canary.write_bytes(b"precious")
    return Place(path, outside)


LOG = f".{FILE_ID}_{EARLY}.log.1_0-0-0"
UP = "../../../../outside"
PLACES: dict[str, Callable[[Place], None]] = {
    "rollback plan: outside": lambda place: place.rollback("{outside}/" + FILE),
    "rollback plan: file uri": lambda place: place.rollback("file:{outside}/" + FILE),
    "rollback plan: dots": lambda place: place.rollback("{table}/../../outside/" + FILE),
    "rollback plan: a sibling": lambda place: place.rollback("{table}x/../" + FILE),
    "rollback plan: the properties": lambda place: place.rollback("{table}/.hoodie/hoodie.properties"),
    "rollback plan: no data file": lambda place: place.rollback("{table}/sf/.hoodie_partition_metadata"),
    "rollback plan: its instant": lambda place: place.rollback(of=f"{UP}/x"),
    "rollback plan: its action": lambda place: place.rollback(action=f"{UP}/x"),
    "markers: dots": lambda place: place.markers("../../outside/" + FILE),
    "markers: absolute": lambda place: place.markers("{outside}/" + FILE),
    "markers: the properties": lambda place: place.markers(".hoodie/hoodie.properties"),
    "commit: path": lambda place: place.commit("../../outside/" + FILE, "sf"),
    "commit: absolute path": lambda place: place.commit("{outside}/" + FILE, "sf"),
    "commit: partition": lambda place: place.commit("sf/" + FILE, "../../outside"),
    "compaction plan: partition": lambda place: place.compaction("../../outside", FILE, LOG),
    "compaction plan: files": lambda place: place.compaction("sf", *["../../../outside/" + FILE] * 2),
    "compaction plan: absolute files": lambda place: place.compaction("sf", *["{outside}/" + FILE] * 2),
    "clustering plan: partition": lambda place: place.clustering("../../outside", "{outside}/" + FILE),
    "clustering plan: file": lambda place: place.clustering("sf", "{outside}/" + FILE),
    "clean plan": lambda place: place.clean(
        "{outside}/" + FILE, "{table}/.hoodie/hoodie.properties", "{table}/../../outside/" + FILE
    ),
    "metadata table: partition": lambda place: place.listing("../../outside", FILE),
    "metadata table: file": lambda place: place.listing("sf", "../../../outside/" + FILE),
    "archive manifest": Place.manifest,
    "properties: timeline": lambda place: place.properties(timeline__path=UP),
    "properties: absolute timeline": lambda place: place.properties(timeline__path="/etc"),
    "properties: history": lambda place: place.properties(timeline__history__path=f"../{UP}"),
    "properties: metadata partitions": lambda place: place.properties(table__metadata__partitions=f"files,{UP}"),
    "properties: a metadata partition of dots": lambda place: place.properties(table__metadata__partitions="files,.."),
    "properties: the metadata table's own folder": lambda place: place.properties(
        table__metadata__partitions="files,.hoodie"
    ),
    "properties: metadata partitions being built": lambda place: place.properties(
        table__metadata__partitions__inflight=UP
    ),
    "properties: index definitions": lambda place: place.properties(
        table__index__defs__path="../../outside/hoodie.properties"
    ),
}

CALLS: dict[str, Callable[[hoodie.Table], object]] = {
    "read": lambda table: table.to_arrow(),
    "files": lambda table: table.inspect.files(),
    "verify": lambda table: table.verify(full=True),
    "upsert": lambda table: table.upsert(rows("ae", 9)),
    "compact": lambda table: table.compact(),
    "cluster": lambda table: table.cluster(),
    "clean": lambda table: table.clean(),
    "archive": lambda table: table.archive(),
    "repair": lambda table: table.repair(dry_run=False, min_age_seconds=0),
    "rebuild": lambda table: table.index.rebuild(wait_seconds=0),
    "insert_overwrite": lambda table: table.insert_overwrite_table(rows("xy", 9)),
}


@pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")
@pytest.mark.parametrize("name", PLACES)
def test_every_call_stays_in_the_table(place: Place, name: str) -> None:
    """Each call succeeds, or fails with an error of hoodie; what is outside is as it was, and so are the properties."""
    PLACES[name](place)
    before = place.canaries()
    for call in CALLS.values():
        with contextlib.suppress(hoodie.HoodieError):
            call(hoodie.open(place.path, spark=False))
        assert place.canaries() == before
