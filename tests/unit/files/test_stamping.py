"""Sequence numbers of rows, and the meta columns that a writer or a base file adds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.files.stamping import COMMIT_TIME, FILE_NAME, SequenceNumbers, Stamper, numbered
from hoodie.records.change import PARTITION_PATH, change_schema

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 1), (0, 1234), (7, 13), (99, 101), (999_999, 1_000_001)])
def test_numbers_follow_the_prefix_without_leading_zeros(start: int, stop: int) -> None:
    found = numbered("é_", start, stop)
    found.validate(full=True)
    assert found.to_pylist() == [f"é_{number}" for number in range(start, stop)]


def test_numbers_above_32_bits() -> None:
    first = (1 << 32) - 2
    assert numbered("", first, first + 4).to_pylist() == [str(first + step) for step in range(4)]


def test_sequence_numbers_of_a_task_go_on() -> None:
    numbers = SequenceNumbers("20261122090000000", 3)
    assert [*numbers.take(2).to_pylist(), *numbers.take(9).to_pylist()] == [
        f"20261122090000000_3_{number}" for number in range(11)
    ]


def test_columns_without_a_value_are_left_to_the_writer() -> None:
    changes = pa.table([[0, 0], ["a", "b"], ["p", "p"], [1, 2]], schema=change_schema(SCHEMA))
    stamped = Stamper(SCHEMA, SequenceNumbers("1", 0), {COMMIT_TIME: "1", PARTITION_PATH: "p"}).new_rows(changes)
    assert stamped.to_pydict() == {
        "_hoodie_commit_time": ["1", "1"],
        "_hoodie_commit_seqno": ["1_0_0", "1_0_1"],
        "_hoodie_record_key": ["a", "b"],
        "_hoodie_partition_path": ["p", "p"],
        "n": [1, 2],
    }
    whole = Stamper(SCHEMA, SequenceNumbers("1", 0), {COMMIT_TIME: "1", PARTITION_PATH: "p", FILE_NAME: "f"})
    assert whole.new_rows(changes)[FILE_NAME].to_pylist() == ["f", "f"]
