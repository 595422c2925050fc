"""Patterns of RLIKE that RE2 lacks, or reads otherwise than Java, are refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import UnsupportedError
from hoodie.records.condition import Condition

SCHEMA = pa.schema([("s", pa.string())])

REFUSED = {
    "(?=a)": "'(?='",
    "(?!a)": "'(?!'",
    "(?<=a)b": "'(?<'",
    "(?<name>a)": "'(?<'",
    "(?>a)": "'(?>'",
    "(?i)a": "'(?i'",
    r"(a)\1": r"'\1'",
    r"\bword": r"'\b'",
    r"\B": r"'\B'",
    r"\p{L}": r"'\p'",
    r"\P{Lu}": r"'\P'",
    r"a\Z": r"'\Z'",
    r"\Ga": r"'\G'",
    r"\h": r"'\h'",
    r"\v": r"'\v'",
    r"\R": r"'\R'",
    r"\X": r"'\X'",
    r"\u0041": r"'\u'",
    r"\x41": r"'\x'",
    r"\07": r"'\0'",
    r"\cA": r"'\c'",
    r"\e": r"'\e'",
    r"\Qa\E": r"'\Q'",
    r"\é": r"'\é'",
    "a++": "possessive",
    "a?+": "possessive",
    "a{2}+": "possessive",
    "a**": "behind",
    "a{2}{3}": "behind",
    "^*": "behind",
    "*a": "quantifies nothing",
    "(+a)": "quantifies nothing",
    "a{,3}": "no quantifier",
    "a{": "no quantifier",
    "a{x}": "no quantifier",
    "a{1001}": "1000",
    "a{3,2}": "",
    "$a": "at the end",
    "(a$)b": "at the end",
    "(a$)*": "at the end",
    "(a$|b)c": "at the end",
    "a$$": "at the end",
    r"a$|b\z": r"\z",
    "[a&&b]": "'&&'",
    "[a[b]]": "'['",
    "[[:alpha:]]": "'['",
    "[]a]": "']'",
    r"[\S]": r"'\S'",
    "[z-a]": "",
    "[a": "ends too early",
    "(a": "without ')'",
    "a)": "without '('",
    "a\\": "ends too early",
    "(" * 60 + "a" + ")" * 60: "nested deeper",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_patterns_that_re2_lacks_or_reads_otherwise_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="RLIKE") as raised:
        Condition.parse(f"s RLIKE r'{pattern}'").row_filter(SCHEMA)
    assert REFUSED[pattern] in str(raised.value)


@pytest.mark.parametrize("pattern", [r"^[\s-a]$", r"^[\s-_]$", r"^[\sx-]$"])
def test_a_hyphen_behind_spaces_is_no_range(pattern: str) -> None:
    texts = ["5", "A", " ", "\t", "-", pattern[-3]]
    found = Condition.parse(f"s RLIKE r'{pattern}'").row_filter(SCHEMA).matching(pa.table({"s": texts}))
    assert found["s"].to_pylist() == texts[2:]
