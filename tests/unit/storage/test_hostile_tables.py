"""No value in a file of a table leads a read, a write or a delete out of the table's folder, or to its own files."""

from __future__ import annotations

import contextlib
import json
import shutil
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

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
FILE = "0a1b2c3d-0000-0000-0000-000000000000-0_0-0-0_20200101000000000.parquet"
LATER = "20990101000000000"


def rows(keys: str, ts: int) -> pa.Table:
    return pa.table({"id": list(keys), "ts": [ts] * len(keys), "city": ["sf", "nyc"] * (len(keys) // 2)}, SCHEMA)


@dataclass(frozen=True)
class Place:
    """A folder with a table in it, and files around it and in it that nobody may touch."""

    path: Path
    outside: Path

    def timeline(self, name: str, content: bytes = b"") -> None:
        (self.path / ".hoodie" / "timeline" / name).write_bytes(content)

    def newest(self, ending: str = "commit") -> Path:
        return max(file for file in (self.path / ".hoodie" / "timeline").iterdir() if file.name.endswith(ending))

    def properties(self, **changes: str) -> None:
        file = self.path / ".hoodie" / "hoodie.properties"
        lines = [line for line in file.read_text().splitlines() if line.partition("=")[0] not in changes]
        file.write_text("\n".join([*lines, *(f"{name}={value}" for name, value in changes.items())]) + "\n")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "t"
    few = {"hoodie.metadata.record.index.min.filegroup.count": "2"}
    table = hoodie.create(
        path, SCHEMA, record_key="id", partition_by="city", ordering="ts", type="merge_on_read", spark=False,
        properties=few,
    )  # fmt: skip
    table.upsert(rows("abcd", 1))
    table.upsert(rows("ab", 2))
    return path


@pytest.fixture
def place(tmp_path: Path, sound: Path) -> Place:
    path = tmp_path / "tables" / "t"
    shutil.copytree(sound, path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / FILE).write_bytes(b"precious")
    (outside / "hoodie.properties").write_bytes(b"precious")
    (tmp_path / "tables" / FILE).write_bytes(b"precious")
    return Place(path, outside)


def canaries(place: Place) -> dict[str, bytes]:
    """All files outside of the table, and those inside that no operation may delete or replace by a foreign path."""
    root = place.path.parent.parent
    found = {str(f): f.read_bytes() for f in root.rglob("*") if f.is_file() and place.path not in f.parents}
    properties = place.path / ".hoodie" / "hoodie.properties"
    return found | {"properties exist": str(properties.exists()).encode()}


def rollback_outside(*named: str) -> Callable[[Place], None]:
    def make(place: Place) -> None:
        paths = [path.format(outside=place.outside, table=place.path) for path in named]
        plan = rollback_plan(InstantInfo(commit_time="20200101000000000", action="commit"), [("", paths)])
        place.timeline(f"{LATER}.rollback.requested", plan.to_bytes())

    return make


def rollback_of(commit_time: str, action: str = "commit") -> Callable[[Place], None]:
    def make(place: Place) -> None:
        plan = rollback_plan(InstantInfo(commit_time=commit_time, action=action), [])
        place.timeline(f"{LATER}.rollback.requested", plan.to_bytes())

    return make


def markers(*lines: str) -> Callable[[Place], None]:
    def make(place: Place) -> None:
        place.timeline("20200101000000000.commit.requested")
        place.timeline("20200101000000000.inflight")
        folder = place.path / ".hoodie" / ".temp" / "20200101000000000"
        folder.mkdir(parents=True)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        text = "\n".join(f"{line.format(outside=place.outside)}.marker.CREATE" for line in lines)
        (folder / "MARKERS0").write_text(text)

    return make


def commit(path: str, partition: str) -> Callable[[Place], None]:
    """The newest commit says that it wrote another file, and replaced file groups of another partition."""

    def make(place: Place) -> None:
        file = place.newest()
        metadata = CommitMetadata.parse(file.read_bytes())
        (name, stats), *rest = metadata.partition_to_write_stats.items()
        hostile = replace(stats[0], path=path.format(outside=place.outside), partition_path=partition)
        changed = replace(metadata, partition_to_write_stats={**dict(rest), name: stats, partition: (hostile,)})
        file.write_bytes(changed.to_bytes(9))

    return make


def compaction(partition: str, base: str, log: str) -> Callable[[Place], None]:
    def make(place: Place) -> None:
        operation = CompactionOperation(
            base_instant_time="20200101000000000",
            file_id="0a1b2c3d-0000-0000-0000-000000000000-0",
            partition_path=partition,
            data_file_path=base.format(outside=place.outside),
            delta_file_paths=(log.format(outside=place.outside),),
        )
        place.timeline(f"{LATER}.compaction.requested", CompactionPlan(operations=(operation,)).to_bytes())

    return make


def clustering(partition: str, base: str) -> Callable[[Place], None]:
    def make(place: Place) -> None:
        piece = SliceInfo(
            file_id="0a1b2c3d-0000-0000-0000-000000000000-0",
            partition_path=partition,
            data_file_path=base.format(outside=place.outside),
        )
        plan = ClusteringPlan(input_groups=(ClusteringGroup(slices=(piece,)),))
        content = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan).to_bytes()
        place.timeline(f"{LATER}.clustering.requested", content)

    return make


def clean(*named: str) -> Callable[[Place], None]:
    def make(place: Place) -> None:
        paths = tuple(CleanFileInfo(file_path=path.format(outside=place.outside, table=place.path)) for path in named)
        plan = CleanerPlan(
            policy="KEEP_LATEST_COMMITS",
            file_paths_to_be_deleted_per_partition={"../../outside": paths, "sf": paths},
            partitions_to_be_deleted=("../../outside", ".hoodie", ""),
        )
        place.timeline(f"{LATER}.clean.requested", plan.to_bytes())

    return make


def listing(partition: str, name: str) -> Callable[[Place], None]:
    """The metadata table lists another file, in another partition."""

    def make(place: Place) -> None:
        with pytest.MonkeyPatch.context() as patch:
            original = FilesKind.rows_of

            def rows_of(self: FilesKind, changes: MetadataChanges, *given: Any) -> Sequence[FileGroupDelta]:
                files = {**changes.files_added, partition: {name: 8}}
                return original(self, replace(changes, files_added=files), *given)

            patch.setattr(FilesKind, "rows_of", rows_of)
            hoodie.open(place.path, spark=False).upsert(rows("cd", 3))

    return make


def manifest(place: Place) -> None:
    folder = place.path / ".hoodie" / "timeline" / "history"
    files = [{"fileName": "../../../../../outside/00000000000000000_99999999999999999_0.parquet", "fileLen": 8}]
    (folder / "manifest_1").write_text(json.dumps({"files": files}))
    (folder / "_version_").write_text("1")


def properties(**changes: str) -> Callable[[Place], None]:
    return lambda place: place.properties(**{name.replace("__", "."): value for name, value in changes.items()})


PLACES: dict[str, Callable[[Place], None]] = {
    "rollback plan: outside": rollback_outside("{outside}/" + FILE),
    "rollback plan: file uri": rollback_outside("file:{outside}/" + FILE),
    "rollback plan: dots": rollback_outside("{table}/../../outside/" + FILE),
    "rollback plan: a sibling": rollback_outside("{table}x/../" + FILE),
    "rollback plan: the properties": rollback_outside("{table}/.hoodie/hoodie.properties"),
    "rollback plan: no data file": rollback_outside("{table}/sf/.hoodie_partition_metadata"),
    "rollback plan: its instant": rollback_of("../../../../outside/x"),
    "rollback plan: its action": rollback_of("20200101000000000", "../../../../outside/x"),
    "markers: dots": markers("../../outside/" + FILE),
    "markers: absolute": markers("{outside}/" + FILE),
    "markers: the properties": markers(".hoodie/hoodie.properties"),
    "commit: path": commit("../../outside/" + FILE, "sf"),
    "commit: absolute path": commit("{outside}/" + FILE, "sf"),
    "commit: partition": commit("sf/" + FILE, "../../outside"),
    "compaction plan: partition": compaction("../../outside", FILE, f".{FILE[:38]}_20200101000000000.log.1_0-0-0"),
    "compaction plan: files": compaction("sf", "../../../outside/" + FILE, "../../../outside/" + FILE),
    "compaction plan: absolute files": compaction("sf", "{outside}/" + FILE, "{outside}/" + FILE),
    "clustering plan: partition": clustering("../../outside", "{outside}/" + FILE),
    "clustering plan: file": clustering("sf", "{outside}/" + FILE),
    "clean plan": clean("{outside}/" + FILE, "{table}/.hoodie/hoodie.properties", "{table}/../../outside/" + FILE),
    "metadata table: partition": listing("../../outside", FILE),
    "metadata table: file": listing("sf", "../../../outside/" + FILE),
    "archive manifest": manifest,
    "properties: timeline": properties(hoodie__timeline__path="../../../../outside"),
    "properties: absolute timeline": properties(hoodie__timeline__path="/etc"),
    "properties: history": properties(hoodie__timeline__history__path="../../../../../outside"),
    "properties: metadata partitions": properties(hoodie__table__metadata__partitions="files,../../../../outside"),
    "properties: a metadata partition of dots": properties(hoodie__table__metadata__partitions="files,.."),
    "properties: the metadata table's own folder": properties(hoodie__table__metadata__partitions="files,.hoodie"),
    "properties: metadata partitions being built": properties(
        **{"hoodie__table__metadata__partitions__inflight": "../../../../outside"}
    ),
    "properties: index definitions": properties(
        **{"hoodie__table__index__defs__path": "../../outside/hoodie.properties"}
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
    "archive": lambda table: table.archive() if hasattr(table, "archive") else None,
    "repair": lambda table: table.repair(dry_run=False, min_age_seconds=0),
    "rebuild": lambda table: table.index.rebuild(wait_seconds=0),
    "insert_overwrite": lambda table: table.insert_overwrite_table(rows("xy", 9)),
}


@pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")
@pytest.mark.parametrize("name", PLACES)
def test_every_call_stays_in_the_table(place: Place, name: str) -> None:
    """Each call succeeds, or fails with an error of hoodie; what is outside is as it was, and so are the properties."""
    PLACES[name](place)
    before = canaries(place)
    for call in CALLS.values():
        with contextlib.suppress(hoodie.HoodieError):
            call(hoodie.open(place.path, spark=False))
        assert canaries(place) == before
