"""Writes into tables whose merge rule mixes the fields of two versions, against a model that merges row by row."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import hoodie
from hoodie.storage import MemoryStore
from hoodie.view.slices import list_slices
from tests.support.altered import commit_schema
from tests.support.mixing_tables import LATEST, PARTIAL, PAYLOADS, POSTGRES, Model, create, drawn, rows_of, shown
from tests.support.seeds import seeded
from tests.support.tables import TYPES, made_once
from tests.unit.write.tables import untouched

KEYS = [f"k{number:02}" for number in range(40)]


@made_once
def made(payload: str, version: int, **options: Any) -> hoodie.Table:
    return create(MemoryStore().uri(""), payload, version, **options)


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize(("version", "index"), [(6, "simple"), (8, "bloom"), (9, "simple"), (9, "record")])
@seeded(7)
def test_upserts_merge_as_the_model(version: int, index: str, payload: str, seed: int) -> None:
    table, model, chooser = made(payload, version, index=index), Model(payload, version), random.Random(seed)
    for step in range(4):
        rows = [drawn(chooser, key, payload, 1000 * step + n) for n, key in enumerate(chooser.choices(KEYS, k=50))]
        model.upsert(rows)
        table.upsert(rows_of(rows, payload))
        assert shown(table.to_arrow(), payload) == model.rows
    assert table.verify(full=True).ok


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_late_row_fills_what_the_stored_row_lacks(version: int, payload: str) -> None:
    """Except with the Postgres class before version 9; a late row that fills nothing writes no file."""
    table, model = made(payload, version, index="simple"), Model(payload, version)
    mark = "u" if payload == POSTGRES else None
    lacks = "__debezium_unavailable_value" if payload == POSTGRES else None
    for row in (("k", 9, lacks, "b", 1, mark), ("k", 3, "late", "late", 2, mark), ("k", 2, "none", "none", 3, mark)):
        model.upsert([row])
        result = table.upsert(rows_of([row], payload))
        assert shown(table.to_arrow(), payload) == model.rows
    if payload != LATEST:
        assert (result.updated, result.files_updated) == (0, 0)


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize(("version", "index"), [(6, "bucket"), (8, "record"), (9, "record"), (9, "bucket")])
@seeded(8)
def test_compactions_change_no_row(version: int, index: str, payload: str, seed: int) -> None:
    chooser, options = random.Random(seed), {"hoodie.compact.inline": "false"}
    table = made(payload, version, index=index, type="merge_on_read", properties=options)
    table.upsert(rows_of([drawn(chooser, key, payload, number) for number, key in enumerate(KEYS)], payload))
    for step in range(1, 3):
        rows = [drawn(chooser, key, payload, 1000 * step + n) for n, key in enumerate(chooser.choices(KEYS, k=50))]
        table.upsert(rows_of(rows, payload))
    logged = shown(table.to_arrow(), payload)
    assert table.schedule_compaction()
    table.compact()
    assert not any(found.log_files for found in list_slices(table.view()))
    assert shown(table.to_arrow(), payload) == logged
    model = Model(payload, version)
    model.rows = logged
    rows = [drawn(chooser, key, payload, 9000 + n) for n, key in enumerate(sorted(logged))]
    rows = [row for row in rows if row[-1] in (False, "u")]  # a logged delete of version 6 wins always
    model.upsert(rows)
    table.upsert(rows_of(rows, payload))
    assert shown(table.to_arrow(), payload) == model.rows


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_record_stored_again_has_no_field_of_the_deleted_one(payload: str) -> None:
    table = made(payload, 9, index="record", type="merge_on_read")
    mark, lacks = ("u", "__debezium_unavailable_value") if payload == POSTGRES else (False, None)
    table.upsert(rows_of([("k", 9, "old", "old", 1, mark)], payload))
    table.delete(rows_of([("k", 9, None, None, 1, mark)], payload).select(["id"]))
    new = ("k", 9, lacks, None, 2, mark)
    table.upsert(rows_of([new], payload))
    assert shown(table.to_arrow(), payload) == {"k": new}


@pytest.mark.parametrize("table_type", TYPES)
def test_what_cannot_be_merged_is_refused_before_anything_is_written(table_type: str) -> None:
    options: dict[str, Any] = {"index": "global_simple", "type": table_type, "partition_by": "b"}
    rows = rows_of([("k", 1, "a", "b", 1, False)], PARTIAL)
    moving = made(PARTIAL, 8, **options)
    with pytest.raises(hoodie.UnsupportedError, match="moves records between partitions, which is not supported with"):
        moving.upsert(rows)
    stays = {"hoodie.simple.index.update.partition.path": "false"}
    table = made(PARTIAL, 8, **options, properties=stays)
    table.upsert(rows)
    table.upsert(rows_of([("k", 2, None, "c", None, False)], PARTIAL))
    assert shown(table.to_arrow(), PARTIAL) == {"k": ("k", 2, "a", "c", 1, False)}
    refused: list[Callable[[], object]] = [
        lambda: table.update({"a": "NULL"}),
        lambda: table.merge(rows, on="t.id = s.id").when_matched_update_all().execute(),
        lambda: table.upsert(rows.select(["id", "ord", "b", "a"]), partial=True),
    ]
    for write in refused:
        with untouched(table, "keeps the stored value where a row has a null", hoodie.UnsupportedError):
            write()
    table.delete_where("a = 'a'")
    assert table.count() == 0


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("payload", "version"), [(PARTIAL, 6), (LATEST, 8), (PARTIAL, 9)])
def test_defaults_that_are_not_null_are_not_merged(payload: str, version: int, type: str) -> None:
    """A row of JVM Hudi keeps the stored value where it has the default of its column."""
    table = made(payload, version, index="simple", type=type, properties={"hoodie.compact.inline": "false"})
    for row in (("k", 1, "a", "b", 1, None), ("k", 2, None, "c", 2, None)):
        table.upsert(rows_of([row], payload))
    stored = shown(table.to_arrow(), payload)
    schema = json.loads(table.view().schema().avro)
    fields = [field | ({"default": 0} if field["name"] == "n" else {}) for field in schema["fields"]]
    commit_schema(table.view(), json.dumps(schema | {"fields": fields}))
    table = hoodie.open(table.path, spark=False)
    refused = "IGNORE_DEFAULTS.*default of 'n' is not null"
    with untouched(table, refused, hoodie.UnsupportedError):
        table.upsert(rows_of([("k", 3, "d", None, 3, None)], payload))
    if type == "copy_on_write":
        assert shown(table.to_arrow(), payload) == stored
        return
    with pytest.raises(hoodie.UnsupportedError, match=refused):
        table.to_arrow()
    table.schedule_compaction()
    with untouched(table, refused, hoodie.UnsupportedError):
        table.compact()
    assert table.to_arrow(view="read_optimized").num_rows == 1
