"""A call parses its condition once, whatever it prunes by it."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.read.local import SliceScan
from hoodie.read.plan import plan_scan
from hoodie.records.condition import Condition
from hoodie.records.sql import parse
from tests.unit.read.counted import new_table

BY_KEY_AND_PARTITION = "id = 'k01' AND city = 'c1' AND x >= 0"


class CountedDialect:
    """Spark's dialect; counts how often it takes each text apart."""

    def __init__(self) -> None:
        self._dialect = parse._SPARK
        self.parsed: Counter[str] = Counter()

    def tokenize(self, text: str) -> Any:
        """Each parse begins here."""
        self.parsed[text] += 1
        return self._dialect.tokenize(text)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text is parsed from now on."""
    counted = CountedDialect()
    monkeypatch.setattr(parse, "_SPARK", counted)
    return counted.parsed


READS: dict[str, Callable[[hoodie.Table], object]] = {
    "to_arrow": lambda table: table.to_arrow(where=BY_KEY_AND_PARTITION),
    "head": lambda table: table.head(where=BY_KEY_AND_PARTITION),
    "count": lambda table: table.count(BY_KEY_AND_PARTITION),
    "delete_where": lambda table: table.delete_where(BY_KEY_AND_PARTITION),
    "update": lambda table: table.update({"x": "x + 1"}, BY_KEY_AND_PARTITION),
}


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("call", READS)
def test_a_call_parses_its_condition_once(tmp_path: Path, parsed: Counter[str], kind: str, call: str) -> None:
    table = new_table(tmp_path / "t", type=kind)
    if kind == "merge_on_read":
        table.upsert(pa.table({"id": ["k01"], "city": ["c1"], "x": [1]}))
    READS[call](table)
    assert parsed[BY_KEY_AND_PARTITION] == 1


def test_a_scan_that_goes_to_a_worker_is_translated_already(tmp_path: Path, parsed: Counter[str]) -> None:
    table = new_table(tmp_path / "t")
    plan = plan_scan(table.view(), where=Condition.parse(BY_KEY_AND_PARTITION))
    scan = pickle.loads(pickle.dumps(SliceScan.of(plan)))
    assert [batch.num_rows for batch in scan.batches(table.view().store, plan.slices[0])] == [1]
    assert parsed[BY_KEY_AND_PARTITION] == 1


def test_text_that_does_not_parse_is_refused_by_the_call(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    for call in (table.to_arrow, table.head):
        with pytest.raises(InvalidConfigError, match="not a Spark SQL expression"):
            call(where="id = ")
    for by_condition in (table.count, table.delete_where):
        with pytest.raises(InvalidConfigError, match="not a Spark SQL expression"):
            by_condition("id = ")
    with pytest.raises(InvalidConfigError, match="not a Spark SQL expression"):
        table.update({"x": "1"}, "id = ")
