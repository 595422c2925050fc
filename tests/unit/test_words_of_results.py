"""What results say: a dry run what would be done, a repair what it mended, a round of services that nothing was due."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.results import ServiceResult
from hoodie.services.recovery.rollback import DROPPED_NOTE
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.archived import OFTEN
from tests.support.tables import new_table, trips, trips_store

OFF = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
RETAINED = {"hoodie.clean.commits.retained": "2"}


@pytest.fixture
def store() -> MemoryStore:
    """A table of nine commits, of which six can be archived, and a heartbeat of a writer that died."""
    return trips_store(*({"a": (number, "sf")} for number in range(9)), properties={**OFTEN, **OFF})


def _newest(table: Table, back: int = 1) -> str:
    return table.timeline.completed().writes().instants[-back].requested_time


def _rolls_back_pending(table: Table) -> ServiceResult:
    table.view().store.create(".hoodie/timeline/20200101000000000.commit.requested", b"")
    return table.rollback("20200101000000000", dry_run=True)


def _repairs(table: Table) -> ServiceResult:
    table.view().store.delete("city=sf/.hoodie_partition_metadata")
    return table.repair()


DRY_RUNS: dict[str, tuple[Callable[[Table], ServiceResult], str]] = {
    "archive": (lambda table: table.archive(dry_run=True), r"archive: would archive 6 commits"),
    "clean": (
        lambda table: table.clean(dry_run=True, properties=RETAINED),
        r"clean: would delete 6 files, free \d+\.\d kB",
    ),
    "rollback": (
        lambda table: table.rollback(_newest(table), dry_run=True),
        r"rollback: would roll back 1 instant and 1 updated row, delete 1 file and \d\.\d kB",
    ),
    "rollback of a pending write": (_rolls_back_pending, r"rollback: would roll back 1 instant"),
    "restore": (
        lambda table: table.restore(_newest(table, back=3), dry_run=True),
        r"restore: would roll back 2 instants and 2 updated rows, delete 2 files and \d\.\d kB",
    ),
    "expire_partitions": (
        lambda table: table.expire_partitions(
            dry_run=True, properties={"hoodie.partition.ttl.strategy.days.retain": "9"}
        ),
        r"expire partitions: would keep 1 partition",
    ),
    "repair": (_repairs, r"repair: would mend 1 finding"),
}


@pytest.mark.parametrize("name", DRY_RUNS)
def test_a_dry_run_says_what_would_be_done(store: MemoryStore, name: str) -> None:
    run, said = DRY_RUNS[name]
    result = run(Table(store))
    first, second, *_ = repr(result).splitlines()
    assert re.fullmatch(said, first), first
    assert second.startswith("  dry run: nothing was changed")
    assert str(result) == repr(result)
    assert first.partition(": ")[2] in result._repr_html_()
    assert "written" not in result._repr_html_()


def test_a_dry_run_without_anything_to_do_says_so(store: MemoryStore) -> None:
    kept = Table(store).clean(dry_run=True, properties={"hoodie.clean.commits.retained": "100"})
    assert str(kept).splitlines()[0] == "clean: nothing to do"


def test_a_repair_says_what_it_would_do_and_what_it_did(store: MemoryStore) -> None:
    planned = _repairs(Table(store))
    step = "write missing .hoodie_partition_metadata files: city=sf/.hoodie_partition_metadata"
    command = f"`hoodie repair {store.uri('')} --execute` (t.repair(dry_run=False)) does it"
    assert planned.notes == (f"would {step}", command)
    assert "1 finding" in planned._repr_html_()
    done = Table(store).repair(dry_run=False)
    assert str(done).splitlines()[0] == "repair: 1 finding mended"
    assert done.notes == (step,)
    assert done.counts == planned.counts == {"partition_files": 1}


def test_a_repair_whose_step_fails_does_not_say_that_it_mended(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _repairs(Table(store))

    def refuse(path: str, _data: bytes) -> None:
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(store, "create", refuse)
    done = Table(store).repair(dry_run=False)
    assert str(done).splitlines()[0] == "repair: 1 finding not mended"
    assert any(note.startswith("failed: write missing") for note in done.notes)


def test_a_result_without_counts_does_not_say_that_nothing_was_done() -> None:
    scheduled = ServiceResult(operation="schedule compaction", instant="20260101000000000")
    assert str(scheduled).splitlines()[0] == "schedule compaction at 20260101000000000"
    failed = ServiceResult(operation="clean", notes=("clean failed after this write, which is committed",))
    assert str(failed).splitlines()[0] == "clean: clean failed after this write, which is committed"
    assert "note:" not in str(failed)
    assert str(ServiceResult(operation="clean")).splitlines()[0] == "clean: nothing to do"


def test_a_note_alone_stands_for_counts(store: MemoryStore) -> None:
    dropped = Table(store).drop_old_timeline()
    assert str(dropped).splitlines()[0] == "drop old timeline: no old timeline is kept"
    assert (dropped.facts()["result"], dropped.facts()["notes"]) == ("no old timeline is kept", "")
    noted = ServiceResult(operation="clean", notes=("one", "two"))
    assert str(noted).splitlines()[0::2] == ["clean", "  note: one"]


def test_a_plan_that_was_pending_is_named() -> None:
    table = Table(trips_store(*({"a": (number, "sf")} for number in range(2))))
    table.bulk_insert(trips({"b": (1, "sf")}))
    planned = table.schedule_clustering()
    assert str(table.cluster()).splitlines()[0] == f"clustering: executed the pending plan {planned} first"
    assert str(table.cluster()).splitlines()[0] == "clustering: nothing to do"


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_table_without_partitions_expires_nothing(dry_run: bool) -> None:
    table = new_table(pa.schema({"id": pa.string()}), {"id": ["a"]})
    expired = table.expire_partitions(dry_run, properties={"hoodie.partition.ttl.strategy.days.retain": "9"})
    assert str(expired).splitlines()[0] == "expire partitions: nothing to do"
    assert expired.facts()["result"] == "nothing to do"


def test_a_dry_run_says_that_the_metadata_table_would_be_built_anew() -> None:
    table = new_table(
        pa.schema({"id": pa.string()}), {"id": ["a"]}, properties={"hoodie.metadata.compact.max.delta.commits": "2"}
    )
    saved = table.savepoint().instant
    assert saved is not None
    for _ in range(4):
        newest = table.upsert({"id": ["a"]}).instant
    (*_, note) = table.restore(saved, dry_run=True).notes
    assert note.startswith("the metadata table has compacted rows of the instants, so it would be deleted and built")
    assert note.endswith("with record_index")
    assert table.restore(saved).notes[0] == DROPPED_NOTE
    newest = table.upsert({"id": ["b"]}).instant
    assert len(table.rollback(newest, dry_run=True).notes) == 1


def test_a_round_of_services_says_that_nothing_was_due(store: MemoryStore) -> None:
    runner = Table(store).services(["ttl"])
    assert str(runner.run_once()) == "nothing was due"
    runner = Table(store).services(["archive"])
    assert str(runner.run_once()).splitlines()[0] == "archive: 6 commits, 0 other instants"


def test_a_look_up_speaks_of_keys_and_file_groups(store: MemoryStore) -> None:
    cost = Table(store).upsert(trips({"a": (1, "sf"), "b": (2, "sf")})).look_up
    assert cost is not None
    assert re.fullmatch(
        r"2 keys looked up in the record index, 1 found: [12] file groups? of the index read, .*", str(cost)
    )
