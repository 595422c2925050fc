"""A condition is parsed once: conditions are joined, compared and pickled without a loss."""

from __future__ import annotations

import pickle
import threading

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.records.condition import Condition
from hoodie.records.sql.parse import DEPTH_MAX

TABLE = pa.table({"id": [1, 2, 3, 4], "city": ["sf", "la", None, "sf"]})


def matching(condition: Condition) -> list[int]:
    """Ids of the rows that match."""
    found: list[int] = condition.row_filter(TABLE.schema).matching(TABLE)["id"].to_pylist()
    return found


def test_text_that_is_no_expression_is_refused_when_it_is_parsed() -> None:
    for text in ("", "id =", "id = 1; id = 2"):
        with pytest.raises(InvalidConfigError):
            Condition.parse(text)


def test_a_pickled_condition_is_equal_and_works() -> None:
    joined = Condition.parse(" AND ".join(f"(id <> {number} OR city = 'it''s')" for number in range(2000, 1, -1)))
    again: Condition = pickle.loads(pickle.dumps(joined))
    assert again == joined
    assert hash(again) == hash(joined)
    assert matching(again) == matching(joined) == [1]


_NESTED = {
    "parentheses": "({}{}{})".format("(" * 10_000, "id = 1", ")" * 10_000),
    "not": "NOT " * 10_000 + "id = 1",
    "plus": "id" + " + id" * 10_000 + " = 1",
    "equal": "id = 1" + " = true" * 10_000,
    "or in parentheses": "(" * 10_000 + "id = 1" + " OR id = 2) AND id < 4" * 10_000,
    "coalesce": "coalesce(" * 10_000 + "id" + ")" * 10_000 + " = 1",
    "dots": "id" + ".id" * 10_000 + " = 1",
    "chains below chains": "({}id{} = 1".format("(" * 50, " + 1" * 60 + ")" + (" + 1" * 60 + ")") * 50),
    "comments": "/*" * 10_000,
}


@pytest.mark.parametrize("case", _NESTED)
def test_deep_text_is_refused(case: str) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        Condition.parse(_NESTED[case])
    assert len(str(raised.value)) < 1000


def test_the_deepest_condition_is_computed() -> None:
    deepest = Condition.parse("id" + " / 1" * (DEPTH_MAX - 3) + " = 1")
    assert matching(deepest) == [1]
    with pytest.raises(InvalidConfigError, match="nested"):
        Condition.parse("id" + " / 1" * DEPTH_MAX + " = 1")


@pytest.mark.parametrize(
    "text",
    [
        "id" + " + 1" * 1000 + " = 1002",
        "id" + " + 1 - 1" * 500 + " = 2",
        "id" + " * 1" * 1000 + " = 2",
        "cast(id AS string)" + " || 'x'" * 1000 + " = concat('2', '" + "x" * 1000 + "')",
    ],
)
def test_long_sums_are_computed_in_their_order(text: str) -> None:
    """Arrow computes them by recursion, here in a thread with a small stack."""
    condition = Condition.parse(text)
    found: list[Condition] = []
    before = threading.stack_size(2 * 1024 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(pickle.loads(pickle.dumps(condition))))
        thread.start()
        thread.join()
        results: list[list[int]] = []
        thread = threading.Thread(target=lambda: results.append(matching(condition)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [condition]
    assert results == [[2]]


@pytest.mark.parametrize("connector", ["OR", "AND"])
def test_long_chains_are_computed(connector: str) -> None:
    """Arrow computes a chain by recursion: 10,000 operands ended the interpreter."""
    leaf = {"OR": "id = {}", "AND": "id <> {}"}[connector]
    long = Condition.parse(f" {connector} ".join(leaf.format(number) for number in range(3, 10_003)))
    expected = {"OR": [3, 4], "AND": [1, 2]}[connector]
    assert matching(long) == expected
    pruned = long.row_group_filter(TABLE.schema, in_utc=True)
    assert pruned is not None
    found = ds.dataset(TABLE).to_table(filter=pruned)
    assert set(expected) <= set(found["id"].to_pylist())


@pytest.mark.parametrize("number", ["9" * 5000, "0." + "9" * 5000, "-" + "9" * 39])
def test_numbers_of_too_many_digits_are_refused(number: str) -> None:
    with pytest.raises(UnsupportedError, match="digits") as raised:
        matching(Condition.parse(f"id = {number}"))
    assert len(str(raised.value)) < 500


def test_text_without_utf_8_form_is_refused() -> None:
    with pytest.raises(InvalidConfigError):
        Condition.parse("city = '\ud800'")
