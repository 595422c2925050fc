"""Merges in process: each index, the rule of ordering values, refused merges, and other writers meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hoodie
from hoodie.merge_into.changes import merged_rows
from hoodie.table.merge import TableMerger
from tests.unit.write.tables import SCHEMA, files_below, new_table, trips

GLOBAL = ("record", "global_simple", "global_bloom")
ONE = trips(("a", 1, 1.0, "sf"))
NAMED = "t.id = s.id AND t.city = s.city"


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("index", [*GLOBAL, "simple", "bloom", "bucket"])
def test_every_index_finds_the_rows_of_a_merge(index: str, table_type: str) -> None:
    table = hoodie.create(
        f"memory://merge-{index}-{table_type}",
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering="ts",
        index=index,
        type=table_type,
    )
    table.upsert(trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 5, 3.0, "la")))
    on = "t.id = s.id" if index in GLOBAL else NAMED
    source = trips(("a", 5, 7.0, "sf"), ("b", 1, -1.0, "sf"), ("n", 1, 4.0, "la"))
    merge = table.merge(source, on).when_matched_delete("s.fare < 0").when_matched_update({"fare": "s.fare + t.fare"})
    result = merge.when_not_matched_insert_all().execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 1)
    rows = table.to_arrow(columns=["id", "fare"]).to_pydict()
    assert dict(zip(*rows.values(), strict=True)) == {"a": 8.0, "c": 3.0, "n": 4.0}
    for twice in (("a", "a"), ("new", "new")):
        double = trips(*((key, 9, 1.0, "sf") for key in twice))
        with pytest.raises(hoodie.RecordKeyError, match="nothing was committed"):
            table.merge(double, on).when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.count() == 3


def test_an_older_source_row_loses_against_the_stored_row(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    older = trips(("a", 0, 9.0, "sf"))
    for merge in (
        table.merge(older, "t.id = s.id").when_matched_update_all(),
        table.merge(older, "t.id = s.id").when_matched_update_all().when_not_matched_insert_all(),
        table.merge(older, "t.id = s.id").when_matched_update({"ts": "s.ts", "fare": "s.fare"}),
    ):
        assert (merge.execute().updated, table.count("fare = 9.0")) == (0, 0)
    assert table.merge(older, "t.id = s.id").when_matched_update({"fare": "s.fare"}).execute().updated == 1


REFUSED: dict[str, tuple[Callable[[hoodie.Table], TableMerger], type[hoodie.HoodieError], str]] = {
    "other condition": (
        lambda t: t.merge(ONE, "t.id = s.id AND t.fare > 1").when_matched_delete(),
        hoodie.UnsupportedError,
        "other conditions belong to the clauses",
    ),
    "no equality": (
        lambda t: t.merge(ONE, "t.id = s.id OR t.city = s.city").when_matched_delete(),
        hoodie.UnsupportedError,
        r"t\.id = s\.id",
    ),
    "no column of the source": (
        lambda t: t.merge(ONE, "t.id = t.city").when_matched_delete(),
        hoodie.UnsupportedError,
        "only equalities",
    ),
    "unknown column to join by": (
        lambda t: t.merge(ONE, "t.no_such = s.id").when_matched_delete(),
        hoodie.SchemaMismatchError,
        "no_such.*table",
    ),
    "types to join by": (
        lambda t: t.merge(ONE, "t.fare = s.id").when_matched_delete(),
        hoodie.SchemaMismatchError,
        "'fare' of type double with source column 'id' of type string; cast",
    ),
    "all columns without the key": (
        lambda t: t.merge(ONE, "t.ts = s.ts").when_matched_update_all(),
        hoodie.InvalidConfigError,
        r"would set \['city', 'id'\]",
    ),
    "no clause": (lambda t: t.merge(ONE, "t.id = s.id"), hoodie.InvalidConfigError, "at least one clause"),
    "clause that never applies": (
        lambda t: t.merge(ONE, "t.id = s.id").when_matched_delete().when_matched_update_all(),
        hoodie.InvalidConfigError,
        "not the last of its kind",
    ),
    "partition column": (
        lambda t: t.merge(ONE, "t.id = s.id").when_matched_update({"city": "s.city"}),
        hoodie.InvalidConfigError,
        "city",
    ),
    "insert without its key": (
        lambda t: t.merge(ONE, "t.id = s.id").when_not_matched_insert({"city": "s.city"}),
        hoodie.InvalidConfigError,
        r"no value for \['id'\]",
    ),
    "insert of another key": (
        lambda t: t.merge(ONE, "t.id = s.id").when_not_matched_insert({"id": "upper(s.id)", "city": "s.city"}),
        hoodie.InvalidConfigError,
        "other values than those that `on` looked up",
    ),
    "source lacks columns": (
        lambda t: t.merge([{"id": "a"}], "t.id = s.id").when_matched_update_all(),
        hoodie.SchemaMismatchError,
        "lacks",
    ),
    "unknown column": (
        lambda t: t.merge(ONE, "t.id = s.id").when_matched_update({"no_such": "1"}),
        hoodie.SchemaMismatchError,
        "no_such",
    ),
    "unknown source column": (
        lambda t: t.merge(ONE, "t.id = s.id").when_matched_update({"fare": "s.no_such"}),
        hoodie.SchemaMismatchError,
        "no_such",
    ),
    "stored column of a new row": (
        lambda t: t.merge(ONE, "t.id = s.id").when_not_matched_insert_all("t.fare > 1"),
        hoodie.SchemaMismatchError,
        "not known here",
    ),
    "ambiguous column": (
        lambda t: t.merge(ONE, "t.id = s.id").when_matched_update({"fare": "ts"}),
        hoodie.SchemaMismatchError,
        "ambiguous: write t.ts or s.ts",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_merge_is_refused_and_writes_nothing(case: str, tmp_path: Path) -> None:
    build, error, text = REFUSED[case]
    table = new_table(tmp_path / "t")
    before = files_below(tmp_path)
    with pytest.raises(error, match=text):
        build(table).execute()
    assert files_below(tmp_path) == before


def test_automatic_keys_name_no_record(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path / "t", SCHEMA, spark=False)
    table.insert(trips(("a", 1, 1.0, "sf")))
    with pytest.raises(hoodie.UnsupportedError, match="automatically"):
        table.merge(ONE, "t.id = s.id").when_matched_delete().execute()


def test_a_merge_is_computed_again_from_what_another_writer_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t")
    calls = []

    def compute_then_meet(*args: object) -> object:
        found = merged_rows(*args)  # type: ignore[arg-type]
        calls.append(1)
        if len(calls) == 1:
            hoodie.open(tmp_path / "t", spark=False).upsert(trips(("a", 2, 100.0, "sf"), ("n", 2, 7.0, "sf")))
        return found

    monkeypatch.setattr("hoodie.merge_into.run.merged_rows", compute_then_meet)
    source = trips(("a", 3, 1.0, "sf"), ("n", 3, 1.0, "sf"))
    merge = table.merge(source, "t.id = s.id").when_matched_update({"fare": "t.fare + s.fare"})
    result = merge.when_not_matched_insert_all().execute()
    assert (result.inserted, result.updated, len(calls)) == (0, 2, 2)
    rows = table.to_arrow(columns=["id", "fare"]).to_pydict()
    assert dict(zip(*rows.values(), strict=True)) == {"a": 101.0, "b": 2.0, "n": 8.0}
