"""Arguments of PySpark's `sql`: where they stand in a statement, and what PySpark has to do itself."""

from __future__ import annotations

import pytest

from hoodie.statements.parameters import bound


class Frame:
    """What tells a DataFrame from a value."""

    sparkSession = None


def test_markers_are_replaced_where_they_are_expressions() -> None:
    text = "SELECT ':id', `?`, :id, s.x -- :id ?\nFROM t WHERE a = :id AND b = :other"
    found = bound(text, {"id": 5, "unused": 1}, {})
    assert found == ("SELECT ':id', `?`, 5, s.x -- :id ?\nFROM t WHERE a = 5 AND b = :other", {})
    assert bound("INSERT INTO t VALUES (?, ?), ('?', ?)", [1, None, "it's"], {}) == (
        "INSERT INTO t VALUES (1, NULL), ('?', 'it\\'s')",
        {},
    )


def test_names_in_braces_are_frames_and_values() -> None:
    rows = Frame()
    found = bound(
        "MERGE INTO t USING {rows} s ON t.id = s.id WHEN MATCHED AND {n} > 1 THEN DELETE", None, {"rows": rows, "n": 2}
    )
    assert found is not None
    text, frames = found
    assert list(frames.values()) == [rows]
    assert text == f"MERGE INTO t USING {next(iter(frames))} s ON t.id = s.id WHEN MATCHED AND 2 > 1 THEN DELETE"
    assert bound("SELECT '{{}}' FROM {rows}", None, {"rows": rows}) == (
        f"SELECT '{{}}' FROM {next(iter(frames))}",
        frames,
    )
    assert bound("SELECT {{}} is text", None, {}) == ("SELECT {{}} is text", {})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT {rows[id]} FROM {rows}",
        "SELECT {rows.id} FROM {rows}",
        "SELECT {other}",
        "SELECT {rows!r}",
        "SELECT {",
        "SELECT }",
    ],
)
def test_other_names_in_braces_are_left_to_pyspark(text: str) -> None:
    assert bound(text, None, {"rows": Frame()}) is None


def test_values_without_a_literal_are_left_to_pyspark() -> None:
    assert bound("SELECT :v", {"v": [1, 2]}, {}) is None
    assert bound("SELECT {v}", None, {"v": {"a": 1}}) is None
