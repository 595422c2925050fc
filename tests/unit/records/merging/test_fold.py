"""Folding logged versions of records, against a model in plain Python (docs/format/table.md §4.5, §6.4, §6.5)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError
from hoodie.format.table.merge_config import PartialUpdateMode
from hoodie.records.change import KIND, RECORD_KEY
from hoodie.records.merging.fold import FoldRule, LogFold, VersionKind, fold, resolve
from hoodie.records.merging.merge import HAS, Overlay, RecordMerger
from tests.support.record_versions import (
    COMMIT,
    CUSTOM,
    DELETE,
    EVENT,
    FIELDS,
    IN_ORDER,
    RECORD,
    ROW,
    ROW_ALONE,
    UNAVAILABLE,
    Model,
    Version,
    rule_of,
    shown,
)
from tests.support.seeds import examples, seeded


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


TEXTS, ORDERINGS = (None, "1", "2", UNAVAILABLE), (None, 0, 1, 2, 3)
VALUES = st.sampled_from(TEXTS)
WHOLE = st.fixed_dictionaries({name: VALUES for name in FIELDS})
SOME = st.fixed_dictionaries({}, optional={name: VALUES for name in FIELDS})
ORDERING = st.sampled_from(ORDERINGS)


def versions(*, is_partial: bool, by_order: bool) -> st.SearchStrategy[list[tuple[str, Version]]]:
    rows = st.builds(Version, st.just(ROW), ORDERING, SOME | WHOLE if is_partial else WHOLE)
    kinds = [st.builds(Version, st.just(DELETE))]
    if by_order:
        kinds += [st.builds(Version, st.just(kind), st.integers(0, 3)) for kind in (IN_ORDER, RECORD)]
    return st.lists(st.tuples(st.sampled_from("xyz"), st.one_of(rows, rows, rows, *kinds)), max_size=14)


RULES = (
    [
        pytest.param(rule_of(mode, is_partial=is_partial), id=f"{mode.value}{'-partial' if is_partial else ''}")
        for mode in (EVENT, COMMIT, CUSTOM)
        for is_partial in (False, True)
    ]
    + [
        pytest.param(rule_of(mode, update_mode=update_mode), id=f"{mode.value}-{update_mode.value}")
        for mode in (EVENT, COMMIT)
        for update_mode in PartialUpdateMode
    ]
    + [
        pytest.param(
            rule_of(mode, update_mode=update_mode, pre_combines=True, newest_meta_fields=mixes),
            id=f"0.x-{mode.value}-{update_mode}-{mixes}",
        )
        for mode, update_mode, mixes in (
            (EVENT, None, False),
            (COMMIT, None, False),
            (COMMIT, PartialUpdateMode.IGNORE_DEFAULTS, False),
            (EVENT, PartialUpdateMode.IGNORE_DEFAULTS, True),
        )
    ]
)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_the_fold_does_what_one_merge_after_the_other_does(rule: FoldRule, data: st.DataObject) -> None:
    by_order = bool(rule.merger.logged_ordering)
    logged = data.draw(versions(is_partial=rule.is_partial, by_order=by_order))
    stored = data.draw(st.dictionaries(st.sampled_from("xyzw"), st.builds(Version, st.just(ROW), ORDERING, WHOLE)))
    assert_folds_as_the_model(
        rule, logged, stored, sorted(data.draw(st.lists(st.integers(0, len(logged)), max_size=3)))
    )


@pytest.mark.parametrize("rule", RULES)
@seeded(1)
def test_many_records_at_once(rule: FoldRule, seed: int) -> None:
    chooser = random.Random(seed)
    keys = [f"k{number}" for number in range(500)]
    logged = [(key, drawn(chooser, rule)) for key in chooser.choices(keys, k=2500)]
    stored = {key: Version(ROW, chooser.choice(ORDERINGS), texts(chooser)) for key in keys if chooser.random() < 0.7}
    assert_folds_as_the_model(rule, logged, stored, sorted(chooser.sample(range(len(logged)), 3)))


def drawn(chooser: random.Random, rule: FoldRule) -> Version:
    """Any version; one in three is a delete."""
    deletes = [DELETE, IN_ORDER, RECORD] if rule.merger.logged_ordering else [DELETE]
    kind = chooser.choice([ROW] * 2 * len(deletes) + deletes)
    if kind is ROW:
        brought = {name: text for name, text in texts(chooser).items() if not rule.is_partial or chooser.random() < 0.6}
        return Version(ROW, chooser.choice(ORDERINGS), brought)
    return Version(kind, None if kind is DELETE else chooser.randint(0, 3))


def texts(chooser: random.Random) -> dict[str, str | None]:
    return {name: chooser.choice(TEXTS) for name in FIELDS}


def assert_folds_as_the_model(
    rule: FoldRule, logged: list[tuple[str, Version]], stored: dict[str, Version], cuts: list[int]
) -> None:
    """Fold at once, in pieces that end at `cuts`, and with stored rows: each as one merge after the other does."""
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
    assert resolved_rows(found, stored, rule) == {key: shown(version) for key, version in final.items()}


def rows_of(table: pa.Table) -> dict[str, tuple[Any, ...]]:
    return {
        row[RECORD_KEY]: (row["ord"], row["a"], row["b"]) for row in table.to_pylist() if row[KIND] in (ROW, ROW_ALONE)
    }


def resolved_rows(found: pa.Table, stored: dict[str, Version], rule: FoldRule) -> dict[str, Any]:
    """What becomes of the stored rows that an entry meets; None for deleted ones."""
    keys = found[RECORD_KEY].to_pylist()
    met = [key for key in stored if key in keys]
    base = entries([(key, stored[key]) for key in met], is_partial=False).drop_columns([KIND])
    resolved = resolve(base, found.take(pa.array([keys.index(key) for key in met], pa.int64())), rule)
    assert not (resolved.replaced & resolved.deleted).any()
    assert resolved.rows.num_rows == resolved.replaced.sum()
    result: dict[str, Any] = {key: shown(stored[key]) for key in met}
    result |= {met[place]: None for place in np.flatnonzero(resolved.deleted)}
    for place, row in zip(np.flatnonzero(resolved.replaced), resolved.rows.to_pylist(), strict=True):
        result[met[place]] = (row["ord"], row["a"], row["b"])
    return result


@pytest.mark.parametrize("delete", [IN_ORDER, RECORD])
@pytest.mark.parametrize(
    ("rule", "late", "last", "expected"),
    [
        (
            rule_of(EVENT, update_mode=PartialUpdateMode.FILL_UNAVAILABLE),
            (None, None),
            (None, UNAVAILABLE),
            (None, "?"),
        ),
        (rule_of(EVENT, update_mode=PartialUpdateMode.IGNORE_DEFAULTS), ("1", "1"), (None, "2"), (None, "2")),
        (rule_of(EVENT, is_partial=True), ("1",), (), (None, None)),
    ],
    ids=["fill unavailable", "ignore defaults", "partial"],
)
def test_a_row_that_loses_to_a_delete_fills_nothing(
    rule: FoldRule,
    delete: VersionKind,
    late: tuple[str | None, ...],
    last: tuple[str | None, ...],
    expected: tuple[str | None, str | None],
) -> None:
    """As the JVM has it; with a plain delete in front too, and in pieces."""
    rows = [dict(zip(FIELDS, values, strict=False)) for values in (late, last)]
    steps = [Version(delete, 1), Version(ROW, 0, rows[0]), Version(ROW, None, rows[0]), Version(ROW, 1, rows[1])]
    for start in ([], [Version(DELETE)], [Version(ROW, 0, dict.fromkeys(FIELDS, "0")), Version(DELETE)]):
        logged = [("k", version) for version in start + steps]
        # After a plain delete, one of a delete block changes nothing: the late row meets no ordering value.
        if not start or delete is IN_ORDER:
            assert rows_of(fold(entries(logged, is_partial=rule.is_partial), rule)) == {"k": (1, *expected)}
        for cut in range(len(logged) + 1):
            assert_folds_as_the_model(rule, logged, {"k": Version(ROW, 0, {"a": "A", "b": "B"})}, [cut])


def u(ordering: int) -> Version:
    return Version(ROW, ordering, {"a": str(ordering), "b": None})


D, X10, X30 = Version(DELETE), Version(RECORD, 10), Version(RECORD, 30)


BY_NOW, BY_0_15 = (rule_of(EVENT),), (rule_of(EVENT, pre_combines=True), rule_of(COMMIT, pre_combines=True))


@pytest.mark.parametrize(
    ("rules", "logged", "expected"),
    [
        (BY_NOW, [D, u(10)], [20]),
        (BY_NOW, [D, u(20)], [20]),
        (BY_NOW, [u(10), D, u(5)], [20]),
        (BY_NOW, [D, X30, u(20)], [20]),
        (BY_NOW, [D, X30, u(10)], [20]),
        (BY_NOW, [X30, u(20)], [None]),
        (BY_NOW, [X10, u(15)], [20]),
        (BY_NOW, [X10], [20]),
        (BY_NOW, [Version(RECORD, 20)], [None]),
        (BY_NOW, [D], [None]),
        (BY_NOW, [u(30), D], [None]),
        (BY_NOW, [u(30), X10], [30]),
        (BY_0_15, [u(10)], [20, 10]),
        (BY_0_15, [u(30), u(10)], [30, 30]),
        (BY_0_15, [u(10), u(5)], [20, 10]),
        (BY_0_15, [u(30), X10], [30, 30]),
        (BY_0_15, [u(10), X10], [None, None]),
        (BY_0_15, [X10], [None, None]),
        (BY_0_15, [X30, u(25)], [25, 25]),
        (BY_0_15, [X30, u(10)], [20, 10]),
        (BY_0_15, [u(30), D, u(10), X10], [None, None]),
        (BY_0_15, [u(30), X10, X30, u(10), X10, u(5)], [20, 5]),
    ],
)
def test_what_the_jvm_does_with_a_stored_row_of_ordering_20(
    rules: tuple[FoldRule, ...], logged: list[Version], expected: list[int | None]
) -> None:
    """Hudi 1.2.0 by event time, and Hudi 0.15 by event and by commit time."""
    found = []
    for rule in rules:
        folded = fold(entries([("k", version) for version in logged], is_partial=False), rule)
        (left,) = resolved_rows(folded, {"k": Version(ROW, 20, {"a": "base", "b": None})}, rule).values()
        found.append(left and left[0])
    assert found == expected


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
    with pytest.raises(InvalidConfigError, match="one for each"):
        fold(logged, rule)


@pytest.mark.parametrize(
    ("newest_meta_fields", "in_steps", "expected"),
    [(False, False, "base"), (True, False, "t3"), (True, True, "t3")],
)
def test_mixed_rows_can_have_the_meta_fields_of_the_later_version(
    newest_meta_fields: bool, in_steps: bool, expected: str
) -> None:
    """Tables of versions 6 and 8 with `PartialUpdateAvroPayload`; every logged version loses against the stored row."""

    def rows(*given: tuple[str, int, str | None]) -> pa.Table:
        times, orderings, values = zip(*given, strict=True)
        return pa.table(
            {
                KIND: pa.array([int(ROW)] * len(given), pa.int8()),
                RECORD_KEY: ["k"] * len(given),
                "_hoodie_commit_time": list(times),
                "ord": pa.array(orderings, pa.int64()),
                "a": pa.array(values, pa.string()),
            }
        )

    overlay = Overlay(PartialUpdateMode.IGNORE_DEFAULTS, is_payload=newest_meta_fields)
    rule = FoldRule(RecordMerger(EVENT, ("ord",), overlay=overlay))
    logged = rows(("t1", 5, None), ("t2", 7, "x"), ("t3", 6, "y"))
    logs = LogFold(logged.schema, rule, pending_bytes=0 if in_steps else 1 << 20)
    for number in range(3):
        logs.add(logged.slice(number, 1))
    resolved = resolve(rows(("base", 9, None)).drop_columns([KIND]), logs.result(), rule)
    (row,) = resolved.rows.to_pylist()
    assert (row["_hoodie_commit_time"], row["ord"], row["a"]) == (expected, 9, "x")
