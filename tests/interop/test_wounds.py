"""What a JVM writer left broken: `verify` finds it, `repair` mends it, and the JVM reads and writes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import hoodie
from tests.interop.judges import Jvm, assert_all_read
from tests.support.tables import Rows, trips

FIRST: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
BEFORE: Rows = {**FIRST, "a": (2, "sf"), "d": (2, "nyc")}
LAST: Rows = {**BEFORE, "b": (3, "sf"), "e": (3, "la")}
INDEX = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


@dataclass(frozen=True)
class Wound:
    """Damage to a table that the JVM wrote, the findings, and the rows after the repair."""

    make: Callable[[Jvm, Path], None]
    findings: frozenset[str]
    rows: Rows


def write(jvm: Jvm, path: Path, table_type: str, rows: Rows) -> None:
    jvm.write_trips(trips(rows), path, table_type=table_type, options=INDEX)


@pytest.fixture(scope="module")
def sources(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table of each type with three commits of the JVM."""
    folder = tmp_path_factory.mktemp("sources")
    for table_type in TYPES:
        path = folder / table_type
        write(jvm, path, table_type, FIRST)
        write(jvm, path, table_type, {"a": (2, "sf"), "d": (2, "nyc")})
        write(jvm, path, table_type, {"b": (3, "sf"), "e": (3, "la")})
    return folder


def _timeline(path: Path) -> Path:
    return path / ".hoodie" / "timeline"


def _completed(path: Path) -> list[Path]:
    return sorted(file for file in _timeline(path).iterdir() if file.suffix in (".commit", ".deltacommit"))


def _newest(path: Path) -> str:
    return _completed(path)[-1].name.partition("_")[0]


def _delete(file: Path) -> None:
    """Delete a file and the checksum file that Hadoop keeps beside it."""
    file.unlink()
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


def _replace(file: Path, content: bytes) -> None:
    _delete(file)
    file.write_bytes(content)


def _of_newest(path: Path) -> list[Path]:
    """The data files of the newest commit."""
    time = _newest(path)
    found = [file for file in path.rglob(f"*{time}*") if ".hoodie" not in file.relative_to(path).parts]
    return sorted(file for file in found if file.suffix != ".crc")


def _lose_markers(_jvm: Jvm, path: Path) -> None:
    """A write that died before its last step, and whose markers are gone."""
    _delete(_completed(path)[-1])


def _lose_completed(_jvm: Jvm, path: Path) -> None:
    """An older write whose completed file is lost: the later ones prove that it completed."""
    _delete(_completed(path)[1])


def _empty_instant(_jvm: Jvm, path: Path) -> None:
    _replace(_completed(path)[-1], b"")


def _corrupt_metadata(_jvm: Jvm, path: Path) -> None:
    log = max(
        (path / ".hoodie" / "metadata" / "files").glob(".files-*.log.*"), key=lambda file: file.stat().st_mtime_ns
    )
    log = log if not log.name.endswith(".crc") else log.with_name(log.name[1:-4])
    _replace(log, log.read_bytes()[:-9])


def _lose_metadata_instant(_jvm: Jvm, path: Path) -> None:
    folder = path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    time = _newest(path)
    _delete(next(file for file in folder.iterdir() if file.name.startswith(f"{time}_")))


def _failed_task(_jvm: Jvm, path: Path) -> None:
    file = next(file for file in _of_newest(path) if file.suffix == ".parquet")
    file_id, token, rest = file.name.split("_")
    (file.parent / f"{file_id}_7{token}_{rest}").write_bytes(file.read_bytes())


def _properties(_jvm: Jvm, path: Path) -> None:
    file = path / ".hoodie" / "hoodie.properties"
    shutil.copy(file, file.with_name("hoodie.properties.backup"))
    _delete(file)


def _partition_file(_jvm: Jvm, path: Path) -> None:
    _delete(path / "sf" / ".hoodie_partition_metadata")


def _leftovers(_jvm: Jvm, path: Path) -> None:
    heartbeat = path / ".hoodie" / ".heartbeat" / "20200101000000000"
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.write_bytes(b"")
    markers = path / ".hoodie" / ".temp" / "20200101000000000" / "MARKERS.type"
    markers.parent.mkdir(parents=True)
    markers.write_bytes(b"DIRECT")


def _half_rollback(jvm: Jvm, path: Path) -> None:
    """A rollback of the JVM that died: its plan is there, and the commit that it rolls back is inflight again."""
    copy = path.with_name("before")
    shutil.copytree(path, copy)
    jvm.rollback(path, _newest(path), table_name="trips", table_version=9)
    plan = next(_timeline(path).glob("*.rollback.requested"))
    name, content = plan.name, plan.read_bytes()
    shutil.rmtree(path)
    copy.rename(path)
    (_timeline(path) / name).write_bytes(content)
    (_timeline(path) / name.replace("requested", "inflight")).write_bytes(b"")
    _delete(_completed(path)[-1])


COW = {
    "missing markers": Wound(_lose_markers, frozenset({"write-dead"}), BEFORE),
    "a lost completed file": Wound(_lose_completed, frozenset({"completion-lost", "index-differs"}), LAST),
    "a zero-byte instant": Wound(_empty_instant, frozenset({"instant-empty"}), BEFORE),
    "a corrupt metadata table": Wound(_corrupt_metadata, frozenset({"metadata-damaged"}), LAST),
    "a missing completed file of the metadata table": Wound(
        _lose_metadata_instant, frozenset({"metadata-behind", "listing-lacks"}), LAST
    ),
    "a base file of a failed task": Wound(_failed_task, frozenset({"file-orphaned"}), LAST),
    "missing properties": Wound(_properties, frozenset({"properties-damaged"}), LAST),
    "a missing partition metadata file": Wound(_partition_file, frozenset({"partition-file-missing"}), LAST),
    "leftovers": Wound(_leftovers, frozenset({"leftover-heartbeat", "leftover-markers"}), LAST),
}
MOR = {
    "half a rollback": Wound(_half_rollback, frozenset({"rollback-pending", "write-dead"}), BEFORE),
    "missing markers": Wound(_lose_markers, frozenset({"write-dead"}), BEFORE),
    "a lost completed file": Wound(_lose_completed, frozenset({"completion-lost", "index-differs"}), LAST),
    "a corrupt metadata table": Wound(_corrupt_metadata, frozenset({"metadata-damaged"}), LAST),
}


def names_of(table: hoodie.Table) -> set[str]:
    report = table.verify(full=True)
    return {*report.problems, *report.warnings}


def both_go_on(jvm: Jvm, path: Path, table_type: str, rows: Rows, theirs: Rows, ours: Rows) -> None:
    """A repaired table has these rows and no finding; the JVM writes, then we do, and all read both writes."""
    assert names_of(hoodie.open(path, spark=False)) == set()
    assert_all_read(jvm, path, trips(rows))
    write(jvm, path, table_type, theirs)
    assert_all_read(jvm, path, trips({**rows, **theirs}))
    hoodie.open(path, spark=False).upsert(trips(ours))
    assert_all_read(jvm, path, trips({**rows, **theirs, **ours}))
    assert names_of(hoodie.open(path, spark=False)) == set()


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("table_type", "name"), [*(("COPY_ON_WRITE", name) for name in COW), *(("MERGE_ON_READ", name) for name in MOR)]
)
def test_the_jvm_goes_on_after_the_repair(jvm: Jvm, sources: Path, tmp_path: Path, table_type: str, name: str) -> None:
    wound = (COW if table_type == "COPY_ON_WRITE" else MOR)[name]
    path = sources / "work" / name.replace(" ", "_") / table_type
    shutil.copytree(sources / table_type, path)
    table = hoodie.open(path, spark=False)
    assert names_of(table) == set()
    wound.make(jvm, path)
    for file in path.rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    table = hoodie.open(path, spark=False)
    assert names_of(table) == wound.findings
    done = table.repair(dry_run=False)
    assert not [note for note in done.notes if note.startswith("failed")]
    theirs: Rows = {"b": (5, "sf"), "y": (1, "la")}
    both_go_on(jvm, path, table_type, wound.rows, theirs, {"c": (7, "nyc"), "z": (1, "sf")})


@pytest.mark.parametrize("table_type", TYPES)
def test_the_jvm_goes_on_after_a_loss_was_accepted(jvm: Jvm, sources: Path, table_type: str) -> None:
    path = sources / "work" / "an_accepted_loss" / table_type
    shutil.copytree(sources / table_type, path)
    table = hoodie.open(path, spark=False)
    lost = sorted(
        f"{row['partition_path']}/{row['file']}"
        for row in table.inspect.files().to_pylist()
        if row["is_current"] and row["kind"] == "base" and row["partition_path"].endswith("nyc")
    )
    left = {key: row for key, row in LAST.items() if row[1] != "nyc"}
    for file in lost:
        (path / file).unlink()
    assert names_of(table) == {"file-missing"}
    table.repair(dry_run=False, accept_loss=lost)
    theirs: Rows = {"b": (5, "sf"), "c": (5, "nyc")}
    both_go_on(jvm, path, table_type, left, theirs, {"d": (7, "nyc"), "z": (1, "sf")})


def test_the_jvm_goes_on_after_a_lost_log_file_was_given_up(jvm: Jvm, sources: Path) -> None:
    path = sources / "work" / "a_lost_log_file"
    shutil.copytree(sources / "MERGE_ON_READ", path)
    table = hoodie.open(path, spark=False)
    newest = table.timeline.completed().instants[-1].requested_time
    (lost,) = (
        f"{row['partition_path']}/{row['file']}"
        for row in table.inspect.files().to_pylist()
        if row["kind"] == "log" and row["instant"] == newest
    )
    (path / lost).unlink()
    assert names_of(table) == {"file-missing"}
    table.repair(dry_run=False, accept_loss=lost)
    left: Rows = {**LAST, "b": FIRST["b"]}
    theirs: Rows = {"b": (5, "sf"), "y": (1, "la")}
    both_go_on(jvm, path, "MERGE_ON_READ", left, theirs, {"a": (7, "sf"), "z": (1, "sf")})
