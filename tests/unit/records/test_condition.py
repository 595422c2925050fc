"""A condition is parsed once: conditions are joined, compared and pickled without a loss."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError
from hoodie.records.condition import Condition

TABLE = pa.table({"id": [1, 2, 3, 4], "city": ["sf", "la", None, "sf"]})


def matching(condition: Condition) -> list[int]:
    """Ids of the rows that match."""
    found: list[int] = TABLE.filter(condition.row_filter(TABLE.schema))["id"].to_pylist()
    return found


def test_text_that_is_no_expression_is_refused_when_it_is_parsed() -> None:
    for text in ("", "id =", "id = 1; id = 2"):
        with pytest.raises(InvalidConfigError):
            Condition.parse(text)


def test_conditions_are_joined_as_wholes() -> None:
    either, city = Condition.parse("id = 1 OR id = 2"), Condition.parse("city = 'sf' OR id = 3")
    both = Condition.all_of([either, city])
    assert both is not None
    assert matching(both) == [1]
    assert matching(Condition.parse(both.text)) == [1]
    assert matching(either) == [1, 2]
    assert matching(city) == [1, 3, 4]


def test_a_comment_at_the_end_of_a_condition_ends_there() -> None:
    both = Condition.all_of([Condition.parse("id = 1 -- the first"), Condition.parse("id < 3")])
    assert both is not None
    assert matching(pickle.loads(pickle.dumps(both))) == [1]


def test_one_condition_is_itself_and_none_is_none() -> None:
    one = Condition.parse("id = 1")
    assert Condition.all_of([one]) is one
    assert Condition.all_of([]) is None


def test_a_pickled_condition_is_equal_and_works() -> None:
    joined = Condition.all_of(Condition.parse(f"id <> {number} OR city = 'it''s'") for number in range(2000, 1, -1))
    assert joined is not None
    again: Condition = pickle.loads(pickle.dumps(joined))
    assert again == joined
    assert hash(again) == hash(joined)
    assert matching(again) == matching(joined) == [1]
