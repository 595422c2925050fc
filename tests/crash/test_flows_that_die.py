"""A flow dies at any storage call of its target, and another process goes on: nothing is lost, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

import hoodie
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.support.deaths import check_tidy, run_until
from tests.support.flows import CREATE, Numbers, flow_into, numbers_of, rows_of_numbers
from tests.support.samples import draw, sample_numbers
from tests.support.tables import copy_of

KINDS: dict[str, dict[str, Any]] = {
    "copy on write": {},
    "merge on read": {"type": "merge_on_read"},
    "simple index": {"index": "simple"},
    "version 6": {"table_version": 6, "type": "merge_on_read"},
    "automatic keys": {"record_key": None},
}
_STOPS = 6


def start(**options: Any) -> MemoryStore:
    store = MemoryStore()
    hoodie.create(store.uri(""), rows_of_numbers(range(0)), **{**CREATE, **options})
    _go_on(Table(store), 2)
    return store


def _go_on(table: Table, count: int) -> None:
    store = table.view().store
    operation = "upsert" if table.view().config.record_key_fields else "insert"
    flow = flow_into(store, Numbers(count), operation=operation)
    while flow.run_batch() is not None:
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_a_flow_that_dies(kind: str) -> None:
    before = start(**KINDS[kind])
    calls = run_until(copy_of(before), lambda table: _go_on(table, 8), None).calls
    for number in sample_numbers(range(1, len(calls) + 1), _STOPS):
        store = copy_of(before)
        died = run_until(store, lambda table: _go_on(table, 8), number)
        forget_all()
        assert died.crashed, number
        _go_on(Table(store), 8)
        assert numbers_of(Table(store)) == list(range(8)), (number, calls[number - 1])
        _go_on(Table(store), 10)  # a writer removes what one that died after its commit left
        assert numbers_of(Table(store)) == list(range(10))
        check_tidy(store, has_record_index=kind in {"copy on write", "merge on read"})


@pytest.mark.parametrize("kind", ["copy on write", "automatic keys"])
def test_a_flow_that_dies_twice(kind: str) -> None:
    before = start(**KINDS[kind])
    calls = run_until(copy_of(before), lambda table: _go_on(table, 6), None).calls
    for number in draw(range(1, len(calls) + 1), 3, f"first death, {kind}"):
        first = copy_of(before)
        run_until(first, lambda table: _go_on(table, 6), number)
        forget_all()
        again = run_until(copy_of(first), lambda table: _go_on(table, 6), None).calls
        for second in draw(range(1, len(again) + 1), 2, f"second death, {kind} {number}"):
            store = copy_of(first)
            assert run_until(store, lambda table: _go_on(table, 6), second).crashed
            forget_all()
            _go_on(Table(store), 6)
            assert numbers_of(Table(store)) == list(range(6)), (number, second)
