"""JSON of files of a table: within limits, or an error that names the file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.json_text import DEPTH_MAX, parse_json, parse_json_object

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # One half of a surrogate pair has no UTF-8 form.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(_VALUES, st.booleans())
def test_round_trip(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_json(text, path="x") == parse_json(text.encode(), path="x") == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nul",
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
        "9" * 5000,
        str(2**63),
        "1e999",
        "NaN",
        "-Infinity",
        '"\\ud800"',
        '{"\\uDFFF": 1}',
        '{"a": 1, "a": 2}',
    ],
)
def test_other_text_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFileError, match="x: a list expected, found") as raised:
        parse_json(text.encode(), path="x", expected="a list")
    assert len(str(raised.value)) < 500


def test_bytes_that_are_no_text_are_corrupt() -> None:
    for data in (b"\xff\xfe\xfd", b'"\x80"', b'{"a": "\0"}', bytes(100)):
        with pytest.raises(CorruptFileError):
            parse_json(data, path="x")


def test_brackets_in_strings_do_not_nest() -> None:
    text = json.dumps({"schema": '{"[' * 1000, "n": [[]] * 500})
    assert parse_json(text, path="x")["schema"] == '{"[' * 1000


def test_the_deepest_text_is_parsed() -> None:
    parse_json("[" * DEPTH_MAX + "]" * DEPTH_MAX, path="x")


def test_the_same_value_twice_is_no_damage() -> None:
    assert parse_json('{"a": [1], "a": [1]}', path="x") == {"a": [1]}


def test_surrogate_pairs_are_text() -> None:
    assert parse_json('"\\ud83d\\ude00"', path="x") == "😀"


def test_an_object_is_expected() -> None:
    with pytest.raises(CorruptFileError, match="a lock expected, found a list"):
        parse_json_object(b"[]", path="x", expected="a lock")
