"""Texts of files become values without a loss, or are refused with their row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.fit_text import fit_texts, type_of_texts

_LOCAL, _ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
_DECIMAL = pa.decimal128(5, 2)

FITTING = (
    (pa.int64(), "5 +5 5.0 5. 5e0 50E-1", 5),
    (pa.int64(), "9223372036854775807", (1 << 63) - 1),
    (pa.int64(), "-9223372036854775808", -(1 << 63)),
    (pa.int32(), "007 7", 7),
    (pa.float64(), "0.1 +0.1 1e-1 .1 0.10", 0.1),
    (pa.float64(), "0.10000000000000001", 0.1),
    (pa.float64(), "9007199254740992 9007199254740992.0", 2.0**53),
    (pa.float64(), "1152921504606846976 1152921504606847000", 2.0**60),
    (pa.float64(), "100000000000000000000000 1e23", 1e23),
    (pa.float64(), "Infinity inf +Inf", float("inf")),
    (pa.float64(), "0 -0.0 0e5 0.000", 0.0),
    (pa.float64(), "5e-324", 5e-324),
    (pa.float32(), "0.5 5e-1", 0.5),
    (pa.float32(), "16777216", 16777216.0),
    (pa.float32(), "0.1 0.10000000149011612", 0.10000000149011612),
    (pa.bool_(), "true TRUE 1", True),
    (pa.bool_(), "false False 0", False),
    (pa.binary(), "é", "é".encode()),
    (pa.binary(4), "abcd", b"abcd"),
    (pa.string(), "007", "007"),
)
"""Type, texts between spaces, and the value that all of them have."""

SAME_AS = (
    (_DECIMAL, "1.5 1.50 1.500 +1.5 15e-1", "1.50"),
    (_DECIMAL, "-999.99", "-999.99"),
    (pa.decimal128(38, 0), "99999999999999999999999999999999999999", "9" * 38),
    (pa.date32(), "2024-02-29", "2024-02-29"),
    (pa.date32(), "0000-01-01 +0000-01-01", "0000-01-01"),
    (pa.date32(), "+10000-01-01 +010000-01-01", "10000-01-01"),
    (pa.date32(), "-0001-12-31", "-0001-12-31"),
    (_LOCAL, "2024-01-31 2024-01-31T00 2024-01-31T00:00 2024-01-31T00:00:00.000000000", "2024-01-31 00:00:00.000000"),
    (_LOCAL, "2024-01-31T01:02:03.5 2024-01-31T01:02:03.500000000", "2024-01-31 01:02:03.500000"),
    (_LOCAL, "+10000-01-01T01:02:03.5", "10000-01-01 01:02:03.500000"),
    (_LOCAL, "-0005-01-01", "-0005-01-01 00:00:00.000000"),
    (_ZONED, "2024-01-31T00:00Z 2024-01-31T05:30+05:30 2024-01-30T23:00:00-0100", "2024-01-31 00:00:00.000000Z"),
    (_ZONED, "+10000-01-01T01:02:03.5+01:00", "10000-01-01 00:02:03.500000Z"),
    (pa.timestamp("ms"), "2024-01-31T01:02:03.123000", "2024-01-31 01:02:03.123"),
    (pa.time64("us"), "12:00:00.5 12:00:00.500000000", "12:00:00.500000"),
    (pa.time32("ms"), "12:00", "12:00:00.000"),
)
"""Type, texts between spaces, and the text of all of them in Arrow: Python has no such dates."""

REFUSED = (
    (pa.int64(), "9223372036854775808 1.5 0x10 1_000 1e30 abc - 5e-1 NaN ٣"),
    (pa.int32(), "2147483648 -2147483649"),
    (
        pa.float64(),
        "9007199254740993 -9007199254740993 9007199254740993.0 12345678901234567890123 18446744073709551615",
    ),
    (pa.float64(), "1e999 -1e999 1e-400 0x10 1d 1e abc 1,5"),
    (pa.decimal128(38, 0), "3e38 1.2e77 340282366920938463463374607431768211457 -9.9e38"),
    (pa.float32(), "16777217 1e39 1e-50 0.123456789 1e999"),
    (_DECIMAL, "1.505 1000 NaN 1e999 abc"),
    (pa.bool_(), "yes 2 t"),
    (pa.date32(), "2023-02-29 20240131 2024-1-1 +10000-02-30 +10000-01-01T00 10000-01-01 abc"),
    (_LOCAL, "2024-01-31T00:00Z 2024-01-31T00:00+01:00 +10000-01-01Z 2024-01-31T00:00:00.0000001 2024-01-31T25:00 now"),
    (_LOCAL, "+999999-01-01 1700000000"),
    (_ZONED, "2024-01-31T00:00 2024-01-31 +10000-01-01T00:00 2024-01-31T00:00UTC"),
    (pa.timestamp("ms"), "2024-01-31T00:00:00.0001"),
    (pa.time64("us"), "24:00 12 12:00:00Z"),
    (pa.binary(4), "abc abcde"),
)
"""Type, and texts between spaces that do not fit."""

INFERRED = (
    (pa.int64(), ("1", "-2", None)),
    (pa.decimal128(38, 0), ("1", "12345678901234567890")),
    (pa.float64(), ("1", "1.5", "1e5", "NaN")),
    (pa.bool_(), ("true", "FALSE")),
    (pa.date32(), ("2024-01-31",)),
    (_LOCAL, ("2024-01-31T00:00", "2024-01-31 12:00:00.5")),
    (_ZONED, ("2024-01-31T00:00Z", "2024-01-31T00:00+01:00")),
    (pa.null(), (None, None)),
    # Codes, and values that no other type keeps.
    (pa.string(), ("01234", "1")),
    (pa.string(), ("+4912345",)),
    (pa.string(), ("9" * 39,)),
    (pa.string(), ("9007199254740993", "1.5")),
    (pa.string(), ("1e999",)),
    (pa.string(), ("2024-02-30",)),
    (pa.string(), ("2024-01-31T00:00Z", "2024-01-31T00:00")),
    (pa.string(), ("1", "a", "")),
)


def test_texts_become_the_value_that_they_name() -> None:
    for wanted, texts, value in FITTING:
        words = texts.split()
        found = fit_texts(pa.array([None, *words]), wanted, "c", int)
        assert found.type == wanted
        assert found.to_pylist() == [None, *[value] * len(words)], (wanted, texts)
    assert str(fit_texts(pa.array(["NaN"]), pa.float64(), "c", int)[0]) == "nan"


def test_decimals_and_times_keep_all_digits() -> None:
    for wanted, texts, text in SAME_AS:
        words = [word.replace("_", " ") for word in texts.split()]
        found = fit_texts(pa.array([*words, None]), wanted, "c", int)
        assert found.type == wanted
        assert found.cast(pa.string()).to_pylist() == [*[text] * len(words), None], (wanted, texts)


def test_texts_that_would_change_are_refused_with_their_row() -> None:
    for wanted, texts in REFUSED:
        good = next(words.split()[0] for kind, words, _ in (*FITTING, *SAME_AS) if kind == wanted)
        for text in texts.split():
            with pytest.raises(SchemaMismatchError) as refused:
                fit_texts(pa.array([good, None, text, good]), wanted, "c", lambda place: place + 1)
            said = str(refused.value)
            assert said.startswith(f"column 'c', row 3: {text!r} does not fit {wanted}"), said
            assert "; expected " in said


def test_a_type_is_inferred_only_if_it_keeps_every_text() -> None:
    for wanted, texts in INFERRED:
        assert type_of_texts(pa.array(texts, pa.string())) == wanted, texts
    assert type_of_texts(pa.array(["1", "2"]), is_quoted=True) == pa.string()
    assert type_of_texts(pa.array(["2024-01-31T00:00Z"]), is_quoted=True) == _ZONED


def test_a_nested_column_takes_only_nulls() -> None:
    wanted = pa.list_(pa.int64())
    assert fit_texts(pa.array([None, None], pa.string()), wanted, "c", int).type == wanted
    with pytest.raises(SchemaMismatchError, match=r"column 'c': a text cannot become list.* write the rows as JSON"):
        fit_texts(pa.array(["[1]"]), wanted, "c", int)
