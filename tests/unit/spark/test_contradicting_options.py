"""Options of `spark.read.format("hoodie")`: two options of one meaning must not contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.errors import HoodieWarning, InvalidConfigError
from hoodie.spark.read_options import ReadOptions, read_options

READ = "hoodie.datasource.read"
QUERY, VIEW, FORMAT = (f"hoodie.datasource.{name}" for name in ("query.type", "view.type", "query.incremental.format"))
TIME = "20261127041500123"
CHANGES = {QUERY: "incremental", f"{READ}.begin.instanttime": "000"}


def parsed(path: Path, options: dict[str, str]) -> ReadOptions:
    return ReadOptions.of(*read_options({"path": str(path), **options}))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"view": "read_optimized", QUERY: "snapshot"}, "view='read_optimized' contradicts"),
        ({"view": "snapshot", VIEW: "read_optimized"}, "view='snapshot' contradicts the option hoodie.datasource.view"),
        ({QUERY: "snapshot", VIEW: "read_optimized"}, "are names of one option"),
        ({"as_of": TIME, "as.of.instant": TIME}, f"as_of='{TIME}' contradicts the option as.of.instant"),
        ({**CHANGES, "since": TIME}, r"\['since'\] beside"),
        ({**CHANGES, "until": TIME, "mode": "cdc"}, r"\['until'\] beside"),
        ({**CHANGES, FORMAT: "latest_state", "mode": "cdc"}, "mode='cdc' contradicts"),
        ({**CHANGES, "as_of": TIME}, "belong to different reads"),
        ({QUERY: "snapshot", "since": TIME}, "belong to different reads"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tmp_path: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidConfigError, match=told):
        parsed(tmp_path, options)


def test_options_of_one_meaning_may_have_one_value(tmp_path: Path) -> None:
    early = parsed(tmp_path, {"as.of.instant": TIME, QUERY: "read_optimized", VIEW: "READ_OPTIMIZED"})
    assert (early.as_of, early.view) == (f"requested:{TIME}", "read_optimized")
    assert parsed(tmp_path, {"as.of.instant": TIME, QUERY: "snapshot", "view": "snapshot"}).view == "snapshot"
    for options in ({"mode": "cdc"}, {FORMAT: "cdc"}, {"mode": "cdc", FORMAT: "cdc"}):
        changes = parsed(tmp_path, {**CHANGES, **options}).changes
        assert changes is not None
        assert (changes.cdc, changes.is_jvm) == (True, True)


def test_options_without_effect_are_named(tmp_path: Path) -> None:
    with pytest.warns(HoodieWarning, match=f"without effect here.* {READ}.file.index.listing.mode"):
        parsed(tmp_path, {f"{READ}.file.index.listing.mode": "eager", "hoodie.upsert.shuffle.parallelism": "2"})
