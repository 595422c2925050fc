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


def test_what_is_text_and_what_is_an_object() -> None:
    nested = {"schema": '{"[' * 1000, "n": [[]] * 500}
    assert parse_json(json.dumps(nested), path="x") == nested
    parse_json("[" * DEPTH_MAX + "]" * DEPTH_MAX, path="x")
    assert parse_json('{"a": [1], "a": [1]}', path="x") == {"a": [1]}
    assert parse_json('"\\ud83d\\ude00"', path="x") == "😀"
    for data in (b"\xff\xfe\xfd", b'"\x80"', b'{"a": "\0"}', bytes(100)):
        with pytest.raises(CorruptFileError):
            parse_json(data, path="x")
    with pytest.raises(CorruptFileError, match="a lock expected, found a list"):
        parse_json_object(b"[]", path="x", expected="a lock")


_REPEATED = [
    '{"a":1,"a":2}',
    '{"a" : 1, "a" : 2}',
    '{"a"\n:1,"b":":c","a"\t:2}',
    '{"b":"{\\"a\\":1}","c":{"a":1,"a":2}}',
    '{"a\\\\":1,"a\\\\":2}',
    '[{"a":1,"b":":","a":[{}]}]',
    '{"a":1,"b":"\\"","a":2}',
]


@pytest.mark.parametrize("text", _REPEATED)
def test_a_key_with_two_values_is_found_in_every_way_to_write_it(text: str) -> None:
    with pytest.raises(CorruptFileError, match="two different values"):
        parse_json(text, path="x")
    parse_json(text.replace("2", "1").replace("[{}]", "1"), path="x")


@pytest.mark.parametrize("begin", [0, 2**20 - 30, 2**20 - 10, 2**20, 2**20 + 5])
def test_a_number_beyond_64_bits_is_found_at_every_place(begin: int) -> None:
    parse_json(" " * begin + str(2**63 - 1), path="x")
    with pytest.raises(CorruptFileError, match="64 bits"):
        parse_json(" " * begin + str(2**63), path="x")


@given(st.lists(st.dictionaries(st.text('a":\\ \n', max_size=4), st.text('a":\\ \n', max_size=4), max_size=3)))
def test_text_like_json_in_strings_is_text(value: object) -> None:
    for separators in ((",", ":"), (", ", " : ")):
        assert parse_json(json.dumps(value, separators=separators), path="x") == value
