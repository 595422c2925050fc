"""Regular expressions that tables and options carry: linear in time, with Java's meaning, or refused by name."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from hoodie.config.clustering import CLUSTER_PARTITION_PATTERN
from hoodie.config.patterns import check_pattern, is_found, match_whole
from hoodie.config.retention import CLEAN_INCREMENTAL, CLEAN_PARTITIONS_PATTERN
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.buckets import BucketCounts
from hoodie.records.keys.partition_path import component_texts
from hoodie.records.keys.timestamp_path import timestamp_format
from hoodie.services.cleaning.partitions import CleanOptions
from hoodie.services.clustering.plan import choose_partitions

ENDLESS = ["(a+)+b", "(a*)*b", "(a|aa)+b", "(a|a?)+b", "([a-z]+)*b", "(.*a){25}b", "(a?){30}a{30}b", "^(a+)+$"]
"""Patterns for which an engine that tries one alternative after the other needs more than a life."""
TEXT = "a" * 3_000 + "!"
SECONDS_MAX = 5.0


def _dates(pattern: str) -> None:
    given = {"timestamp.type": "DATE_STRING", "input.dateformat": f"'{TEXT}'yyyy", "output.dateformat": "yyyy"}
    try:
        timestamp_format(given | {"input.dateformat.list.delimiter.regex": pattern})
    except InvalidConfigError as error:
        if "delimiter" in str(error):
            raise


DOORS: dict[str, Callable[[str], object]] = {
    "clustering": lambda pattern: choose_partitions([TEXT], {CLUSTER_PARTITION_PATTERN.key: pattern}, hour=0),
    "clean": lambda pattern: CleanOptions.of(
        {CLEAN_PARTITIONS_PATTERN.key: pattern, CLEAN_INCREMENTAL.key: "false"}
    ).selects(TEXT),
    "buckets": lambda pattern: BucketCounts.parse(f"{pattern},7", 3, where="x").of(TEXT),
    "dates": _dates,
}
"""Each place where a pattern of a table, or of a call's options, is used."""

# Each pattern, with texts that java.util.regex.Pattern matches as a whole, and texts that it does not match.
SAME_AS_JAVA: list[tuple[str, list[str], list[str]]] = [
    ("2026-0[1-3]", ["2026-01"], ["2026-04", "2026-01-01", "x2026-01"]),
    (r"year=\d{4}/m=\d+", ["year=2026/m=1"], ["year=２０２６/m=1", "year=2026/m="]),
    ("a|bc", ["a", "bc"], ["abc", "b"]),
    ("(?i)DAY=.*", ["day=1", "Day="], ["1"]),
    (r"\Qa.b\E+", ["a.bbb"], ["axb"]),
    (r"\p{L}+", ["äb日"], ["a1"]),
    (r"[^\]\[&]+", ["ab"], ["a]", "[", "&"]),
    (r"[]a]+", ["]a"], ["b"]),
    (r"\\1|\+\+", ["\\1", "++"], ["1", "+"]),
    ("[(?=+]+", ["(?=+"], ["a"]),
    ("(?:a|b)??c", ["ac", "c"], ["abc"]),
    ("(?<year>20..)", ["2026"], ["1999"]),
    (r"\w+", ["a_1"], ["ä", "日"]),
    ("", [""], ["a"]),
    ("a.c", ["abc"], ["a\nc"]),
]

REFUSED = {
    r"(a)\1": r"the back-reference \1",
    r"(a)\11": r"the back-reference \1",
    r"(?<n>a)\k<n>": r"the back-reference \k",
    "(?=a).*": "a look-around (?=…)",
    "(?!a).*": "a look-around (?!…)",
    "a(?<=a)": "a look-around (?<=…)",
    "a(?<!b)": "a look-around (?<!…)",
    "(?>a|ab)c": "an atomic group",
    "a*+": "the possessive quantifier *+",
    "a++": "the possessive quantifier ++",
    "a{2}+": "the possessive quantifier }+",
    "[a-z&&[^b]]": "an intersection of classes",
    "[a-c&&b]": "an intersection of classes",
    "[a[bc]]": "a class in a class",
    "(?x) a": "the flag (?x)",
    "(?U)a": "the flag (?U)",
    "(?iu)a": "the flag (?iu)",
    "(": "a regular expression expected, missing )",
    "[a": "a regular expression expected, missing ]",
    "*": "a regular expression expected, no argument for repetition operator: *",
    "a\\": "a regular expression expected",
    r"\h": r"a regular expression expected, invalid escape sequence: \h",
    "a{2000}": "a regular expression expected, invalid repetition size: {2000}",
    "((a{100}){100}){100}": "a regular expression expected, invalid repetition size: {100}",
}


def test_no_pattern_takes_longer_than_its_text() -> None:
    begin = time.monotonic()
    for door, use in DOORS.items():
        for pattern in ENDLESS:
            use(pattern)
            assert time.monotonic() - begin < SECONDS_MAX, (door, pattern)


def test_patterns_have_the_meaning_of_java() -> None:
    for pattern, matching, others in SAME_AS_JAVA:
        assert match_whole(check_pattern(pattern), [*matching, *others]) == [True] * len(matching) + [False] * len(
            others
        ), pattern
    assert is_found("b.d", "abcde")
    assert not is_found("b$", "abc")


def test_what_cannot_be_linear_or_means_something_else_in_java_is_refused_by_name() -> None:
    for pattern, said in REFUSED.items():
        for option, choose in (
            (CLUSTER_PARTITION_PATTERN, DOORS["clustering"]),
            (CLEAN_PARTITIONS_PATTERN, DOORS["clean"]),
        ):
            with pytest.raises(InvalidConfigError) as caught:
                choose(pattern)
            assert said in str(caught.value)
            assert f"{option.key}={pattern!r}" in str(caught.value)
        with pytest.raises(InvalidConfigError) as caught:
            DOORS["dates"](pattern)
        assert said in str(caught.value)
        with pytest.raises(UnsupportedError, match="is not understood"):
            DOORS["buckets"](pattern)


def test_paths_are_cut_in_linear_time_as_the_names_say() -> None:
    fields = ["a", "b", "a", "c"]
    begin = time.monotonic()
    assert component_texts("a=" + "/b=/a=" * 20_000, [*fields * 8, "d"], hive_style=True, url_encode=False) is None
    assert time.monotonic() - begin < SECONDS_MAX
    for path, expected in {
        "a=1/b=2": ["1", "2"],
        "a=/b=": ["", ""],
        "a=1/b=2/b=3": None,  # or "1/b=2" and "3"
        "a=x/y/b=z/w": ["x/y", "z/w"],
        "a=/a=1/b=\n": ["/a=1", "\n"],
        "b=2/a=1": None,
        "x/a=1/b=2": None,
        "a=1": None,
        "": None,
    }.items():
        found = component_texts(path, ["a", "b"], hive_style=True, url_encode=False)
        assert (None if found is None else list(found.values())) == expected, path
