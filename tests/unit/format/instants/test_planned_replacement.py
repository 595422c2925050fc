"""What an overwrite is to replace, in its plan."""

from __future__ import annotations

import pytest

from hoodie.format.instants.planned_replacement import REPLACES, PlannedReplacement
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata


@pytest.mark.parametrize(
    "planned",
    [
        PlannedReplacement(),
        PlannedReplacement(partitions=("city=nyc", "")),
        PlannedReplacement.of_groups([("city=sf", "b"), ("city=sf", "a")], ["city=sf/x.parquet"]),
        PlannedReplacement.of_groups([], ["city=sf/x.parquet"]),
    ],
    ids=repr,
)
def test_a_plan_is_read_as_it_was_written(planned: PlannedReplacement) -> None:
    assert PlannedReplacement.parse(planned.to_plan(), path="t") == planned


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{", '{"partitions": [1]}', '{"groups": [["a"]]}', '{"groups": 3}', '{"lost": "x"}']
)
def test_other_plans_say_nothing(text: str) -> None:
    content = RequestedReplaceMetadata(extra_metadata={REPLACES: text}).to_bytes()
    assert PlannedReplacement.parse(content, path="t") is None


def test_plans_of_other_writers_and_damaged_ones_say_nothing() -> None:
    content = RequestedReplaceMetadata().to_bytes()
    for other in (content, b"", content[:-5]):
        assert PlannedReplacement.parse(other, path="t") is None
