"""Late rows and deletes in merge-on-read tables of version 6, against a model of Hudi 0.15 (format/table.md §6.6)."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import hoodie
from hoodie.records.merging.fold import VersionKind
from hoodie.storage import MemoryStore
from tests.support.record_versions import COMMIT, EVENT, Model, Version, rule_of, shown
from tests.support.seeds import seeded

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("ord", pa.int64()),
        ("a", pa.string()),
        ("b", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
IDS = range(40)
MODES = {"event_time": EVENT, "commit_time": COMMIT}


def batch(chooser: random.Random, ids: list[int], name: str) -> list[tuple[int, Version]]:
    """Versions of these records: one in four is a delete, and one in four comes with an older or newer one."""
    found = []
    for number, key in enumerate(chooser.choices(ids, k=len(ids) // 4) + ids):
        kind = VersionKind.DELETE_RECORD if chooser.random() < 0.25 else VersionKind.ROW
        found.append((key, Version(kind, chooser.randint(1, 9), {"a": f"{name}.{number}", "b": "b"})))
    return found


def table_of(versions: list[tuple[int, Version]]) -> pa.Table:
    rows = [(key, v.ordering, v.fields["a"], v.fields["b"], v.kind is not VersionKind.ROW) for key, v in versions]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def chosen(versions: list[tuple[int, Version]]) -> dict[int, Version]:
    """Of a batch, the version with the greatest ordering value counts, or the later one of two."""
    found: dict[int, Version] = {}
    for key, version in versions:
        if key not in found or (version.ordering or 0) >= (found[key].ordering or 0):
            found[key] = version
    return found


@pytest.mark.parametrize("index", ["simple", "record"])
@pytest.mark.parametrize("mode", MODES)
@seeded(3)
def test_rows_are_those_of_hudi_0_15(mode: str, index: str, seed: int) -> None:
    chooser = random.Random(seed)
    table = hoodie.create(
        MemoryStore().uri(""), SCHEMA, record_key="id", ordering="ord", type="merge_on_read", table_version=6,
        merge_mode=mode, index=index, spark=False, properties={"hoodie.compact.inline": "false"},
    )  # fmt: skip
    model = Model(rule_of(MODES[mode], pre_combines=True))
    first = [(key, Version(VersionKind.ROW, chooser.randint(1, 9), {"a": "base", "b": "b"})) for key in IDS]
    table.upsert(table_of(first))
    base, logged = dict(first), dict[int, Version]()
    for step in range(8):
        ids = sorted(base) if index == "simple" else [key for key in base if _visible(model, base, logged, key)]
        if step in (2, 5):
            gone = chooser.sample(ids, 5)
            table.delete(pa.table({"id": pa.array(gone, pa.int32())}))
            logged |= {key: Version(VersionKind.DELETE) for key in gone}
            continue
        versions = batch(chooser, chooser.sample(ids, len(ids) // 2), str(step))
        table.upsert(table_of(versions))
        for key, version in chosen(versions).items():
            logged[key] = model.merge(logged.get(key), version)
        expected = {key: row for key in base if (row := _visible(model, base, logged, key))}
        assert _rows(table) == expected
        if step == 6:
            table.schedule_compaction()
            table.compact()
            assert _rows(table) == expected
            base = {key: Version(VersionKind.ROW, row[0], {"a": row[1], "b": row[2]}) for key, row in expected.items()}
            logged = {}
    table.upgrade(to=9, dry_run=False)
    expected = {key: row for key in base if (row := _visible(model, base, logged, key))}
    assert _rows(table) == expected


def _visible(
    model: Model, base: dict[int, Version], logged: dict[int, Version], key: int
) -> tuple[int | None, str | None, str | None] | None:
    return shown(model.merge(base[key], logged[key], is_final=True) if key in logged else base[key])


def _rows(table: hoodie.Table) -> dict[int, tuple[int, str, str]]:
    return {row["id"]: (row["ord"], row["a"], row["b"]) for row in table.to_arrow().to_pylist()}
