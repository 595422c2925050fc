"""An archiving that dies at any call loses no instant, and the next one completes it: no instant is archived twice."""

from __future__ import annotations

import pytest

from hoodie.errors import HoodieError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, check_recovery, deaths, new_table, rows_of, trips
from tests.support.archived import OFTEN, active_times, archived_times

OFF = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}


@pytest.mark.parametrize("merges", [False, True], ids=["first file", "file that is merged"])
def test_an_archiving_that_dies_is_completed(merges: bool) -> None:
    store, rows = MemoryStore(), Rows()
    new_table(store, properties=OFTEN)
    for number in range(15 if merges else 7):
        rows |= {f"k{number % 3}": (number, "sf")}
        options = {"hoodie.clean.automatic": "false"} if merges and number in (6, 10) else OFF
        Table(store).upsert(
            trips({f"k{number % 3}": (number, "sf")}),
            properties=options,
        )
    before = sorted([*archived_times(store), *active_times(store)])
    has_merged = False
    for number, death in enumerate(deaths(store, lambda table: table.archive(), keep=5)):
        seen = {*archived_times(death.store), *active_times(death.store)}
        assert sorted(seen) == before, str(death)
        assert rows_of(death.store) == rows, str(death)
        view = Table(death.store).view()
        assert not view.timeline.pending().instants, str(death)
        assert all(view.timeline.contains_or_before_start(time) for time in before), str(death)
        if number % 4 == 0:
            check_recovery(death.store, rows, rows)
        while len(active_times(death.store)) <= 4:
            Table(death.store).upsert(trips({"later": (1, "sf")}), properties=OFF)
        Table(death.store).archive()
        everything = [*archived_times(death.store), *active_times(death.store)]
        assert len(everything) == len({*everything}) >= len(before), str(death)
        assert {*before} <= {*everything}, str(death)
        names = death.store.names(".hoodie/timeline/history")
        has_merged |= any(name.endswith("_1.parquet") for name in names)
    assert has_merged or not merges


def test_a_writer_that_lost_the_lock_changes_no_archive() -> None:
    store = MemoryStore()
    new_table(store, properties=OFTEN)
    for number in range(8):
        Table(store).upsert(trips({"k": (number, "sf")}), properties=OFF)
    before = active_times(store)
    table = Table(store)
    view = table.view()
    original = view.store.replace
    stolen: list[str] = []

    def replace(path: str, data: bytes) -> None:
        original(path, data)
        if path.endswith(".parquet") and not stolen:
            stolen.append(path)
            store.delete(".hoodie/lock")

    store.replace = replace  # type: ignore[method-assign]
    with pytest.raises(HoodieError, match="does not name this writer any more"):
        table.archive()
    assert stolen
    assert active_times(store) == before
    assert archived_times(store) == []
