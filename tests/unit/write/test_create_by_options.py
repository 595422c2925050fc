"""Options of a write tell what table it creates: once, and equal in each later write."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hoodie
from hoodie.files.table_properties import read_table_config
from hoodie.storage import MemoryStore
from hoodie.write.create_by_options import JVM_DEFAULTS, TableOptions
from tests.support.tables import PLAIN

WRITE = "hoodie.datasource.write"


def ensure(store: MemoryStore, given: dict[str, str], *, may_create: bool = True) -> None:
    wanted, rest = TableOptions.split(given)
    call = {name: value for name, value in rest.items() if name.startswith("hoodie.")}
    wanted.ensure(store, PLAIN, call, may_create=may_create)


def test_both_vocabularies_mean_the_same() -> None:
    own, rest = TableOptions.split(
        {"record_key": "id, city", "ordering": "ts", "type": "merge_on_read", "index": "simple"}
    )
    jvm = {
        f"{WRITE}.recordkey.field": "id,city",
        f"{WRITE}.precombine.field": "ts",
        f"{WRITE}.partitionpath.field": "",
        f"{WRITE}.table.type": "merge_on_read",
        f"{WRITE}.operation": "UPSERT",
        "hoodie.parquet.max.file.size": "1000",
        "hoodie.table.cdc.enabled": "true",
        "index": "simple",
    }
    found, more = TableOptions.split(jvm)
    assert found.arguments == own.arguments
    assert (rest, more) == ({}, {"operation": "upsert", "hoodie.parquet.max.file.size": "1000"})
    assert found.properties == {"hoodie.table.cdc.enabled": "true"}
    with pytest.raises(hoodie.InvalidConfigError, match="are the same one"):
        TableOptions.split({"record_key": "id", f"{WRITE}.recordkey.field": "ts"})
    # Without an option of the table, its properties stay options of the call.
    assert TableOptions.split({"hoodie.table.cdc.enabled": "true"})[1] == {"hoodie.table.cdc.enabled": "true"}


def test_a_table_is_created_once_and_compared_afterwards() -> None:
    store = MemoryStore()
    given = {"record_key": "id", "name": "trips", "hoodie.table.cdc.enabled": "true"}
    for refused, may_create in (({}, True), (given, False)):
        with pytest.raises(hoodie.TableNotFoundError, match=r"hoodie\.create.* record_key"):
            ensure(store, refused, may_create=may_create)
    for wrong, message in (
        ({"hoodie.no.such": "1"}, "unknown option"),
        ({"ordering": "none"}, "expected a column"),
        ({"type": "log"}, "copy_on_write"),
    ):
        with pytest.raises(hoodie.HoodieError, match=message):
            ensure(store, {**given, **wrong})
        assert not store.list("", recursive=True)
    for _ in range(2):
        ensure(store, given)
    table = hoodie.open(store.uri(""), spark=False)
    assert (table.view().config.name, table.view().config.is_cdc_enabled) == ("trips", True)
    ensure(store, {})
    for other in ({"record_key": "ts"}, {"name": "others"}, {"index": "bloom"}, {"partition_by": "city"}):
        with pytest.raises(hoodie.InvalidConfigError, match="the table exists with"):
            ensure(store, {**given, **other})


def test_the_second_of_two_first_writes_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    ensure(store, {"record_key": "id"})
    # What a writer saw that looked before the other one created the table.
    monkeypatch.setattr("hoodie.write.create_by_options.table_exists", lambda store: False)
    ensure(store, {"record_key": "id"})
    with pytest.raises(hoodie.InvalidConfigError, match="the table exists with record_key"):
        ensure(store, {"record_key": "ts"})


def test_the_index_of_the_call_decides_the_new_table() -> None:
    store = MemoryStore()
    given = {"record_key": "id", "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    for _ in range(2):
        ensure(store, given)
    assert read_table_config(store).raw["hoodie.bucket.index.num.buckets"] == "3"
    wanted, call = TableOptions.split(given)
    assert wanted.defines(store, PLAIN, call)
    assert not wanted.defines(store, PLAIN, {**call, "hoodie.bucket.index.num.buckets": "4"})
    assert not wanted.defines(store, PLAIN, {"hoodie.index.type": "SIMPLE"})


INDEX, MOVES = "hoodie.index.type", "hoodie.record.index.update.partition.path"
BUCKETS = {"hoodie.bucket.index.num.buckets": "2"}
STAYS = {"hoodie.simple.index.update.partition.path": "false"}
RECORD, GLOBAL = "hoodie.metadata.record.index.enable", "hoodie.metadata.global.record.level.index.enable"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({INDEX: "BUCKET", **BUCKETS}, BUCKETS),
        ({INDEX: "GLOBAL_SIMPLE", **STAYS}, STAYS),
        # As in the JVM: records of a record index that the options enable stay in their partition.
        ({INDEX: "RECORD_INDEX", RECORD: "true"}, {MOVES: "false"}),
        ({INDEX: "GLOBAL_RECORD_LEVEL_INDEX", GLOBAL: "true", MOVES: "true"}, {MOVES: "true"}),
        ({INDEX: "RECORD_INDEX"}, {MOVES: "true"}),
        ({}, {MOVES: "true"}),
    ],
)
def test_options_of_the_index_are_those_of_the_new_table(given: dict[str, str], stored: dict[str, str]) -> None:
    store = MemoryStore()
    keyed = {f"{WRITE}.recordkey.field": "id", f"{WRITE}.partitionpath.field": "city"}
    wanted, rest = TableOptions.split({**keyed, **given})
    options = replace(wanted, defaults=JVM_DEFAULTS)
    for _ in range(2):
        options.ensure(store, PLAIN, rest, may_create=True)
    found = read_table_config(store).raw
    assert {key: found.get(key) for key in stored} == stored
