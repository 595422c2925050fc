"""Compactions and log compactions that a write runs, by its options and by the defaults of JVM Hudi's data source."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hoodie.engine import ArrowDataset
from hoodie.errors import InvalidConfigError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.table.save import Save
from hoodie.timeline import Action
from hoodie.write.create_by_options import JVM_DEFAULTS
from tests.support.merge_on_read import merged_rows, new_table
from tests.support.refusals import refused
from tests.support.tables import SCHEMA, trips

WRITE = "hoodie.datasource.write"
OPTIONS = {
    "hoodie.table.name": "trips",
    f"{WRITE}.recordkey.field": "id",
    f"{WRITE}.precombine.field": "ts",
    f"{WRITE}.partitionpath.field": "city",
    f"{WRITE}.table.type": "MERGE_ON_READ",
}
AFTER_TWO = {"hoodie.compact.inline.max.delta.commits": "2"}


def compactions(store: MemoryStore) -> list[str]:
    """The compactions of the timeline: completed ones by the state, pending ones by their action."""
    found = Table(store).timeline
    done = [instant for instant in found if instant.is_completed and instant.action is Action.COMMIT]
    return ["completed" for _ in done] + [str(instant.action.value) for instant in found.pending()]


def save_twice(options: Mapping[str, str], defaults: Mapping[str, str], store: MemoryStore | None = None) -> list[str]:
    """Write an insert and an update as a data source with these defaults; return the compactions."""
    store = store or MemoryStore()
    for turn in (1, 2):
        rows = trips({"a": (turn, "sf")})
        save = Save.of({**AFTER_TWO, **options}, overwrites=False, defaults=defaults)
        save.checked(store, SCHEMA, ArrowDataset(rows.slice(0, 0))).run(Table(store), rows)
    assert merged_rows(store) == {"a": (2, "sf")}
    return compactions(store)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ["completed"]),
        ({"hoodie.compact.inline": "false"}, []),
        ({"hoodie.compact.schedule.inline": "true"}, ["compaction"]),
        ({"hoodie.datasource.compaction.async.enable": "true"}, []),
        ({"hoodie.datasource.compaction.async.enable": "false"}, ["completed"]),
        ({f"{WRITE}.table.type": "COPY_ON_WRITE"}, ["completed", "completed"]),  # its two commits
    ],
)
def test_the_data_source_compacts_as_in_the_jvm(options: dict[str, str], found: list[str]) -> None:
    assert save_twice({**OPTIONS, **options}, JVM_DEFAULTS) == found


def test_other_writes_do_not_compact_unless_they_are_told_to() -> None:
    assert save_twice(OPTIONS, {}) == []


def test_a_stored_option_counts_before_the_default_of_the_data_source() -> None:
    store = new_table(properties={"hoodie.compact.inline": "false"})
    assert save_twice({}, JVM_DEFAULTS, store) == []


def test_options_that_contradict_are_refused() -> None:
    table = Table(new_table())
    both = {"hoodie.compact.inline": "true", "hoodie.compact.schedule.inline": "true"}
    with refused(table, "expected true for one of them", error=InvalidConfigError):
        table.upsert(trips({"a": (1, "sf")}), properties=both)
    with refused(table, "log_file_size", error=InvalidConfigError):
        table.upsert(trips({"a": (1, "sf")}), properties={"hoodie.compaction.strategy": "com.example.Mine"})


def test_a_write_folds_the_logs() -> None:
    store = new_table(index="simple")
    options = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "3"}
    done = []
    for turn in range(1, 9):
        result = Table(store).upsert(trips({"a": (turn, "sf")}), properties=options)
        done.append("" if result.compaction is None else result.compaction.operation)
        assert merged_rows(store) == {"a": (turn, "sf")}
    # The base file comes from the first write. A log compaction is due three delta commits after the last one.
    assert done == ["", "", "", "log compaction", "", "", "log compaction", ""]
    assert compactions(store) == []
