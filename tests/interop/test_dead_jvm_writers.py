"""Writers of the JVM that died: we roll back what they left, whatever kind of markers they had, and the JVM goes on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.files.markers import TEMP_FOLDER
from hoodie.format.instants.commit_metadata import NULL_COMMIT
from hoodie.timeline.instant import Action, Instant
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
MARKERS = {
    "direct": {"hoodie.write.markers.type": "DIRECT"},
    "timeline server": {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED", "hoodie.embed.timeline.server": "true"},
}
_trips = partial(table_of, SCHEMA)


def _jvm_upsert(jvm: Jvm, path: Path, rows: pa.Table, options: dict[str, str] | None = None) -> None:
    jvm.write_trips(rows, path, options=options)


def _assert_all_read(jvm: Jvm, path: Path, expected: pa.Table) -> None:
    ours = hoodie.open(path).to_arrow()
    assert_same_rows(ours, expected, key="id")
    for metadata in ("true", "false"):
        assert_same_rows(jvm.read(path, options={"hoodie.metadata.enable": metadata}), ours, meta=True)
    assert_same_rows(read_with_hudi_rs(path), ours, meta=True)


def _files_of(path: Path, instant_time: str) -> list[str]:
    """Data files and markers of an instant."""
    found = [*path.glob(f"*/*{instant_time}*.parquet"), *(path / TEMP_FOLDER).glob(f"{instant_time}/**/*")]
    return sorted(str(file.relative_to(path)) for file in found if not file.name.startswith("."))


def _assert_we_and_the_jvm_go_on(jvm: Jvm, path: Path, dead: Instant, rows: dict[str, tuple[str, int, str]]) -> None:
    """We roll back and write, then the JVM writes; `rows` are those of before the dead write."""
    assert_same_rows(hoodie.open(path).to_arrow(), _trips(*rows.values()), key="id")
    hoodie.open(path).upsert(_trips(("b", 5, "nyc"), ("e", 1, "sf")))
    assert _files_of(path, dead.requested_time) == []
    timeline = hoodie.open(path).timeline
    assert timeline.get(dead.requested_time) is None
    assert [instant.action for instant in timeline.completed().instants].count(Action.ROLLBACK) == 1
    expected = {**rows, "b": ("b", 5, "nyc"), "e": ("e", 1, "sf")}
    _assert_all_read(jvm, path, _trips(*expected.values()))
    _jvm_upsert(jvm, path, _trips(("a", 6, "sf"), ("f", 1, "oslo")))
    expected |= {"a": ("a", 6, "sf"), "f": ("f", 1, "oslo")}
    _assert_all_read(jvm, path, _trips(*expected.values()))


@pytest.mark.parametrize("kind", MARKERS)
def test_a_write_that_failed_half_way(jvm: Jvm, tmp_path: Path, kind: str) -> None:
    """An ordering value of null makes the JVM fail in one partition, after it wrote another."""
    path = tmp_path / "trips"
    first = {"a": ("a", 1, "sf"), "b": ("b", 1, "nyc"), "c": ("c", 1, "la")}
    _jvm_upsert(jvm, path, _trips(*first.values()), MARKERS[kind])
    with pytest.raises(Exception, match="HoodieUpsertException"):
        _jvm_upsert(jvm, path, _trips(("a", None, "sf"), ("b", 2, "nyc"), ("d", 2, "la")), MARKERS[kind])
    (dead,) = hoodie.open(path).timeline.pending().instants
    left = _files_of(path, dead.requested_time)
    assert any(name.endswith(".parquet") for name in left)
    assert any("MARKERS" in name if kind == "timeline server" else ".marker." in name for name in left), left
    _assert_we_and_the_jvm_go_on(jvm, path, dead, first)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("kind", [*MARKERS, "none"])
def test_a_write_that_died_before_its_last_step(jvm: Jvm, tmp_path: Path, kind: str) -> None:
    """Everything is there, the metadata table knows the files, but the completed file was never made."""
    path = tmp_path / "trips"
    first = {"a": ("a", 1, "sf"), "b": ("b", 1, "nyc"), "c": ("c", 1, "la")}
    _jvm_upsert(jvm, path, _trips(*first.values()))
    _jvm_upsert(jvm, path, _trips(("a", 2, "sf"), ("b", 2, "nyc"), ("d", 2, "oslo")))
    dead = hoodie.open(path).timeline.completed().instants[-1]
    _undo_completion(path, dead, kind)
    _assert_we_and_the_jvm_go_on(jvm, path, dead, first)


def _undo_completion(path: Path, instant: Instant, kind: str) -> None:
    """Take the completed file away and put back the markers that the JVM deletes after it."""
    view = hoodie.open(path).view()
    markers = [
        f"{stat.path}.marker.{'CREATE' if stat.prev_commit == NULL_COMMIT else 'MERGE'}"
        for stat in view.commit_metadata(instant).write_stats()
    ]
    assert len(markers) == 3
    folder = path / TEMP_FOLDER / instant.requested_time
    if kind == "direct":
        for marker in markers:
            (folder / marker).parent.mkdir(parents=True)
            (folder / marker).touch()
    elif kind == "timeline server":
        folder.mkdir(parents=True)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        (folder / "MARKERS0").write_text("\n".join(markers[:2]) + "\n")
        (folder / "MARKERS3").write_text(markers[2] + "\n")
    name = f"{instant.requested_time}_{instant.completion_time}.commit"
    for file in (name, f".{name}.crc"):
        (path / ".hoodie/timeline" / file).unlink()
