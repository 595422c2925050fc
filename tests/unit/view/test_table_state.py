"""A table whose timeline folder is missing is damaged: it is neither read as an empty table nor written to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError
from hoodie.files.table_properties import PROPERTIES
from hoodie.storage import open_store
from hoodie.table import Table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from tests.support.fault_store import FaultStore
from tests.support.tables import new_table

ROWS = pa.table({"id": ["a", "b"], "x": [1, 2]})
TIMELINE = Path(".hoodie", "timeline")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table with one commit."""
    new_table(ROWS.schema, ROWS, path=tmp_path / "t")
    return tmp_path / "t"


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["missing", "renamed", "without history"])
def test_a_missing_timeline_is_an_error_on_open_read_and_write(folder: Path, kind: str) -> None:
    table = hoodie.open(folder, spark=False)
    if kind == "renamed":
        (folder / TIMELINE).rename(folder / ".hoodie" / "timelime")
    else:
        shutil.rmtree(folder / TIMELINE)
    if kind == "without history":
        (folder / TIMELINE).mkdir()
    before = files_of(folder)
    for call in (
        lambda: hoodie.open(folder),
        lambda: table.to_arrow(),
        lambda: table.upsert(ROWS),
        lambda: table.bulk_insert(ROWS),
        lambda: table.delete_where("x = 1"),
        lambda: table.timeline,
        lambda: table.changes(),
        lambda: table.index.build(),
        lambda: table.schedule_compaction(),
    ):
        with pytest.raises(
            CorruptFileError, match=r"/\.hoodie/timeline: expected the folder .*timeline\.path=timeline"
        ):
            call()
    assert files_of(folder) == before


def test_a_changed_bit_of_the_timeline_path_is_an_error_or_changes_nothing(folder: Path) -> None:
    path = folder / PROPERTIES
    content = path.read_bytes()
    start = content.index(b"hoodie.timeline.path")
    value, end = content.index(b"=", start) + 1, content.index(b"\n", start)
    outcomes: dict[int, set[object]] = {}
    for at in range(start, end):
        for bit in range(8) if at >= value else (at % 8,):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            path.write_bytes(changed)
            try:
                outcomes.setdefault(at, set()).add(hoodie.open(folder, spark=False).to_arrow().num_rows)
            except CorruptFileError:
                outcomes.setdefault(at, set()).add("refused")
    # A damaged name of the property leaves its default, which is the right value.
    assert outcomes == {at: {"refused"} if at >= value else {2} for at in range(start, end)}


OTHER_MARKERS: dict[str, tuple[str, ...]] = {
    "ours": (".hoodie/timeline/history/.keep",),
    "EMRFS": (".hoodie/timeline_$folder$", ".hoodie/timeline/history_$folder$"),
    "WASB": (".hoodie/timeline/history",),
}


@pytest.mark.parametrize("markers", OTHER_MARKERS.values(), ids=OTHER_MARKERS.keys())
def test_a_new_table_in_an_object_store_is_empty_and_not_damaged(markers: tuple[str, ...]) -> None:
    """The objects that stand for the folders of the timeline are those of this writer, or of another one."""
    table = new_table(ROWS.schema)
    store = table.view().store
    store.delete(".hoodie/timeline/history/.keep")
    for marker in markers:
        store.create(marker, b"")
    assert Table(store).to_arrow().num_rows == 0
    assert Table(store).upsert(ROWS).inserted == 2


def test_the_error_tells_how_to_mend_a_copy_of_a_new_table_without_markers() -> None:
    store = new_table(ROWS.schema).view().store
    store.delete(".hoodie/timeline/history/.keep")
    with pytest.raises(CorruptFileError) as caught:
        Table(store).to_arrow()
    named = str(caught.value).rpartition("create the empty object ")[2]
    assert named == store.uri(".hoodie/timeline/history/.keep")
    store.create(named.removeprefix(store.uri("")).lstrip("/"), b"")
    assert Table(store).to_arrow().num_rows == 0


def test_the_folder_is_looked_for_once_and_only_while_there_is_no_instant(folder: Path, tmp_path: Path) -> None:
    new_table(ROWS.schema, path=tmp_path / "new")
    for path, more in ((folder, 0), (tmp_path / "new", 1)):
        store = FaultStore(open_store(path), count_reads=True)
        view = TableView.load(TableState(store))
        assert len(store.calls) == 2 + more
        view.refreshed()
        assert len(store.calls) == 4 + more


def test_every_state_forgets_a_table_that_was_dropped(tmp_path: Path) -> None:
    """The states share the commits, and each forgets what it has read itself, whichever loads the new table first."""
    state = TableState(open_store(str(tmp_path / "t")))
    other = state.for_call({"hoodie.write.lock.acquire.wait.timeout.ms": "1"})
    assert other is not state
    assert other.commits is state.commits
    written: list[str] = []
    for _ in range(2):
        hoodie.create(tmp_path / "t", ROWS, record_key="id").insert(ROWS)
        for one in (state, other):
            view = TableView.load(one)
            assert not one.rollbacks_seen
            assert one.unbuildable is None
            view.commit_metadata(view.completed_writes()[-1])
        written.append(view.completed_writes()[-1].requested_time)
        assert [time for time in written if state.commits.get(time) is not None] == written[-1:]
        state.rollbacks_seen.add("1")
        state.unbuildable = other.unbuildable = "a reason"
        shutil.rmtree(tmp_path / "t")
