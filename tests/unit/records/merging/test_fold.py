"""Folding logged versions of records, against a model in plain Python (docs/format/table.md §4.5, §6.4, §6.5)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.records.change import KIND, RECORD_KEY
from hoodie.records.merging.fold import EntryKind, FoldRule, LogFold, fold, settle
from hoodie.records.merging.merge import RecordMerger
from hoodie.records.merging.overlay import HAS

EVENT, COMMIT, CUSTOM = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING, MergeMode.CUSTOM
ROW, DELETE, IN_ORDER, RECORD, ROW_ALONE = EntryKind
FIELDS = ("a", "b")
UNAVAILABLE = "?"


@dataclass
class Version:
    """One version of a record: what happens, its ordering value, and the fields that it brings."""

    kind: EntryKind
    ordering: int | None = None
    fields: dict[str, str | None] = field(default_factory=dict)


def entries(versions: list[tuple[str, Version]], *, is_partial: bool) -> pa.Table:
    columns: dict[str, Any] = {
        KIND: pa.array([version.kind for _, version in versions], pa.int8()),
        RECORD_KEY: pa.array([key for key, _ in versions], pa.string()),
        "ord": pa.array([version.ordering for _, version in versions], pa.int64()),
    }
    for name in FIELDS:
        columns[name] = pa.array([version.fields.get(name) for _, version in versions], pa.string())
    if is_partial:
        for name in FIELDS:
            columns[HAS + name] = pa.array([name in version.fields for _, version in versions], pa.bool_())
    return pa.table(columns)


def rule_of(mode: MergeMode, *, is_partial: bool = False, update_mode: PartialUpdateMode | None = None) -> FoldRule:
    function = joined if mode is CUSTOM else None
    merger = RecordMerger(mode, ("ord",) if mode is EVENT else (), function)
    return FoldRule(merger, update_mode, UNAVAILABLE, is_partial)


def joined(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray]:
    """Join the texts of `a`; a record whose text grows beyond four characters is deleted."""
    texts = pc.binary_join_element_wise(pc.fill_null(older["a"], ""), pc.fill_null(newer["a"], ""), "")
    merged = newer.set_column(newer.schema.get_field_index("a"), "a", texts)
    return merged, pc.greater(pc.binary_length(texts), 4).combine_chunks()


class Model:
    """The same, one version after the other, as the specification says it."""

    def __init__(self, rule: FoldRule) -> None:
        self._rule = rule

    def merge(self, old: Version | None, new: Version, *, is_final: bool = False) -> Version:
        by_order = self._rule.merger.mode is EVENT
        if old is None:
            return new
        if self._rule.merger.function is not None:
            return self._by_function(old, new)
        if not by_order:
            return self._mixed(old, new) if old.kind is ROW and new.kind is ROW else new
        if new.kind is DELETE:
            return new
        if old.kind is DELETE:
            return old if new.kind is RECORD and not is_final else new
        wins = self._rank(new.ordering) >= self._rank(old.ordering)
        if old.kind is ROW and new.kind is ROW:
            return self._mixed(old, new) if wins else self._mixed(new, old)
        return new if wins else old

    def _by_function(self, old: Version, new: Version) -> Version:
        """What was deleted is not merged with what comes later."""
        if new.kind is not ROW:
            return new
        if old.kind is DELETE:
            return replace(new, kind=ROW_ALONE)
        called = self._called(old, new)
        return replace(called, kind=ROW_ALONE) if old.kind is ROW_ALONE and called.kind is ROW else called

    def _mixed(self, loser: Version, winner: Version) -> Version:
        if self._rule.overlay is None:
            return winner
        fields = {
            name: winner.fields.get(name) if self._brings(winner, name) else loser.fields.get(name)
            for name in FIELDS
            if self._brings(winner, name) or self._brings(loser, name)
        }
        rest = {name: winner.fields.get(name) for name in FIELDS if name not in fields and name in winner.fields}
        ordering = winner.ordering
        if ordering is None and self._rule.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS:
            ordering = loser.ordering
        return Version(ROW, ordering, fields | rest)

    def _called(self, old: Version, new: Version) -> Version:
        fields = {name: new.fields[name] if name in new.fields else old.fields.get(name) for name in FIELDS}
        names = [name for name in FIELDS if name in {**old.fields, **new.fields}]
        text = (old.fields.get("a") or "") + (fields["a"] or "")
        if len(text) > 4:
            return Version(DELETE)
        return Version(ROW, new.ordering, {name: text if name == "a" else fields[name] for name in names})

    def _brings(self, version: Version, name: str) -> bool:
        if self._rule.is_partial:
            return name in version.fields
        if self._rule.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS:
            return version.fields[name] is not None
        return version.fields[name] != UNAVAILABLE

    @staticmethod
    def _rank(ordering: int | None) -> float:
        return -1 if ordering is None else ordering


def shown(version: Version | None) -> tuple[int | None, str | None, str | None] | None:
    if version is None or version.kind not in (ROW, ROW_ALONE):
        return None
    return (version.ordering, version.fields.get("a"), version.fields.get("b"))


VALUES = st.sampled_from([None, "1", "2", UNAVAILABLE])
WHOLE = st.fixed_dictionaries({name: VALUES for name in FIELDS})
SOME = st.fixed_dictionaries({}, optional={name: VALUES for name in FIELDS})
ORDERING = st.one_of(st.none(), st.integers(0, 3))


def versions(*, is_partial: bool, by_order: bool) -> st.SearchStrategy[list[tuple[str, Version]]]:
    rows = st.builds(Version, st.just(ROW), ORDERING, SOME | WHOLE if is_partial else WHOLE)
    kinds = [st.builds(Version, st.just(DELETE))]
    if by_order:
        kinds += [st.builds(Version, st.just(kind), st.integers(0, 3)) for kind in (IN_ORDER, RECORD)]
    return st.lists(st.tuples(st.sampled_from("xyz"), st.one_of(rows, rows, rows, *kinds)), max_size=14)


RULES = [
    pytest.param(rule_of(mode, is_partial=is_partial), id=f"{mode.value}{'-partial' if is_partial else ''}")
    for mode in (EVENT, COMMIT, CUSTOM)
    for is_partial in (False, True)
] + [
    pytest.param(rule_of(mode, update_mode=update_mode), id=f"{mode.value}-{update_mode.value}")
    for mode in (EVENT, COMMIT)
    for update_mode in PartialUpdateMode
]


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=40)
@given(data=st.data())
def test_the_fold_does_what_one_merge_after_the_other_does(rule: FoldRule, data: st.DataObject) -> None:
    by_order = rule.merger.mode is EVENT
    logged = data.draw(versions(is_partial=rule.is_partial, by_order=by_order))
    stored = data.draw(st.dictionaries(st.sampled_from("xyzw"), st.builds(Version, st.just(ROW), ORDERING, WHOLE)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(logged)), max_size=3)))
    model, expected = Model(rule), dict[str, Version]()
    for key, version in logged:
        expected[key] = model.merge(expected.get(key), version)
    whole = entries(logged, is_partial=rule.is_partial)

    found = fold(whole, rule)
    assert sorted(found[RECORD_KEY].to_pylist()) == sorted(expected)
    assert rows_of(found) == {key: row for key, version in expected.items() if (row := shown(version))}

    pieces = LogFold(whole.schema, rule, pending_bytes=0)
    for start, end in zip([0, *cuts], [*cuts, len(logged)], strict=True):
        pieces.add(whole.slice(start, end - start))
    assert rows_of(pieces.result()) == rows_of(found)

    final = {key: model.merge(old, expected[key], is_final=True) for key, old in stored.items() if key in expected}
    assert settled_rows(found, stored, rule) == {key: shown(version) for key, version in final.items()}


def rows_of(table: pa.Table) -> dict[str, tuple[Any, ...]]:
    return {
        row[RECORD_KEY]: (row["ord"], row["a"], row["b"]) for row in table.to_pylist() if row[KIND] in (ROW, ROW_ALONE)
    }


def settled_rows(found: pa.Table, stored: dict[str, Version], rule: FoldRule) -> dict[str, Any]:
    """What becomes of the stored rows that an entry meets; None for deleted ones."""
    keys = found[RECORD_KEY].to_pylist()
    met = [key for key in stored if key in keys]
    base = entries([(key, stored[key]) for key in met], is_partial=False).drop_columns([KIND])
    settled = settle(base, found.take(pa.array([keys.index(key) for key in met], pa.int64())), rule)
    assert not (settled.replaced & settled.deleted).any()
    assert settled.rows.num_rows == settled.replaced.sum()
    result: dict[str, Any] = {key: shown(stored[key]) for key in met}
    result |= {met[place]: None for place in np.flatnonzero(settled.deleted)}
    for place, row in zip(np.flatnonzero(settled.replaced), settled.rows.to_pylist(), strict=True):
        result[met[place]] = (row["ord"], row["a"], row["b"])
    return result


def u(ordering: int) -> Version:
    return Version(ROW, ordering, {"a": str(ordering), "b": None})


D, X10, X30 = Version(DELETE), Version(RECORD, 10), Version(RECORD, 30)


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        ([D, u(10)], 20),
        ([D, u(20)], 20),
        ([u(10), D, u(5)], 20),
        ([D, X30, u(20)], 20),
        ([D, X30, u(10)], 20),
        ([X30, u(20)], None),
        ([X10, u(15)], 20),
        ([X10], 20),
        ([Version(RECORD, 20)], None),
        ([D], None),
        ([u(30), D], None),
        ([u(30), X10], 30),
    ],
)
def test_what_the_jvm_does_with_a_stored_row_of_ordering_20(logged: list[Version], expected: int | None) -> None:
    rule = rule_of(EVENT)
    found = fold(entries([("k", version) for version in logged], is_partial=False), rule)
    (left,) = settled_rows(found, {"k": Version(ROW, 20, {"a": "base", "b": None})}, rule).values()
    assert (left and left[0]) == expected


def test_nulls_in_an_int_column_are_zeros() -> None:
    rule = rule_of(EVENT)
    logged = entries(
        [("k", u(0)), ("k", Version(ROW, None, {"a": "null"})), ("j", u(1)), ("j", Version(ROW, None))],
        is_partial=False,
    )
    as_int = logged.set_column(2, "ord", logged["ord"].cast(pa.int32()))
    assert rows_of(fold(as_int, rule)) == {"k": (None, "null", None), "j": (1, "1", None)}
    assert rows_of(fold(logged, rule)) == {"k": (0, "0", None), "j": (1, "1", None)}


def test_several_ordering_fields_compare_one_after_the_other() -> None:
    rule = FoldRule(RecordMerger(EVENT, ("ord", "a")))
    texts = [("1", "b"), ("1", "a"), ("0", "z")]
    logged = entries([("k", Version(ROW, int(first), {"a": text})) for first, text in texts], is_partial=False)
    assert rows_of(fold(logged, rule)) == {"k": (1, "b", None)}
    assert rows_of(fold(logged.slice(1), rule)) == {"k": (1, "a", None)}


def test_a_merger_must_return_a_row_for_each() -> None:
    rule = FoldRule(RecordMerger(CUSTOM, (), lambda older, newer: newer.slice(1)))
    logged = entries([("k", u(1)), ("k", u(2))], is_partial=False)
    with pytest.raises(ValueError, match="one for each"):
        fold(logged, rule)
