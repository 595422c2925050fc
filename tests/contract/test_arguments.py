"""Whatever a caller passes: a right answer, or an error of this library; a refused call changes nothing.

The public functions and methods are found by introspection, so that a new one is called without a new line here.
`HOODIE_TEST_ALL=1` calls each with every odd value on every kind of table; otherwise a sample, by HOODIE_TEST_SEED:
how a method takes an argument does not depend on the kind, so the kinds share the calls of a run.
"""

from __future__ import annotations

import datetime as dt
import pickle
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.storage.memory import MemoryStore
from tests.contract.odd_values import DATA, VALUES
from tests.contract.public_surface import KINDS, ROWS, Callable_, Files, Template, end, files_of, surface, template_of
from tests.support.samples import sample_of
from tests.support.tables import new_table

SECONDS_MAX = 5.0  # of this process's CPU, for one call
CASES_KEPT = 1000 // len(KINDS)  # of each kind of table
DAMAGED_KEPT = 300 // len(KINDS)

surface_of = cache(lambda kind: surface(template_of(kind)))


@dataclass(frozen=True)
class Case:
    """One argument of one call gets an odd value."""

    called: Callable_
    argument: str
    value: str

    @property
    def is_own_code(self) -> bool:
        """Whether the odd value is a function that the call runs: its errors are the caller's."""
        return "Callable" in str(self.called.parameters[self.argument].annotation) and "function" in self.value

    def run(self, template: Template, table: hoodie.Table) -> None:
        """Call it."""
        odd = (VALUES | DATA)[self.value]()
        end(self.called.bound_to(table)(**{**self.called.required(template), self.argument: odd}))

    def __str__(self) -> str:
        return f"{self.called.name}({self.argument}=<{self.value}>)"


def cases(kind: str) -> Iterator[Case]:
    """Every argument with every odd value; data has further ones."""
    for called in surface_of(kind):
        for argument, parameter in called.parameters.items():
            values = VALUES | DATA if parameter.annotation == "Any" else VALUES
            found = [Case(called, argument, value) for value in values]
            yield from (case for case in found if not case.is_own_code)


@pytest.mark.timeout(3000)  # of all cases
@pytest.mark.parametrize("kind", KINDS)
def test_odd_arguments_are_answered_or_refused_by_name(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # an odd path may be a right one
    template = template_of(kind)
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in sample_of(list(cases(kind)), CASES_KEPT, kind):
            table = template.copy()
            MemoryStore("a new table").delete_all(
                [file.path for file in MemoryStore("a new table").list("", recursive=True)]
            )
            call = partial(case.run, template, table)
            wrong += [f"{case}: {found}" for found in _complaints(call, table, template.files)]
    assert not wrong, "\n".join([f"{len(wrong)} calls:", *wrong])


def _call(called: Callable_, template: Template, table: hoodie.Table) -> None:
    end(called.bound_to(table)(**called.required(template)))


def _complaints(call: Callable[[], None], table: hoodie.Table, before: Files | None) -> Iterator[str]:
    """What is wrong with how a call ended: a raw error, too slow, a refusal that changed files, rows that are lost."""
    started = time.process_time()
    try:
        call()
    except hoodie.HoodieError as error:
        if before is not None and files_of(table) != before:
            yield f"refused ({error}), and changed {sorted(dict(files_of(table).items() ^ before.items()))}"
    except Exception as error:  # the rest is what the test looks for
        frames = traceback.extract_tb(error.__traceback__)
        at = [frame for frame in frames if "/hoodie/" in frame.filename or frame is frames[0]][-1]
        yield f"{type(error).__name__} at {at.filename}:{at.lineno}"
    else:
        if before is not None and files_of(table) != before:
            hoodie.Table(table._context.state.store).count("n > 0")
    if time.process_time() - started > SECONDS_MAX:
        yield f"took {time.process_time() - started:.1f} s"


def test_the_surface_has_what_users_hold() -> None:
    """The introspection reaches the handles behind the handle, and the objects that methods return."""
    names = {called.name for called in surface_of("copy-on-write")}
    assert {
        "hoodie.create",
        "hoodie.sql",
        "hoodie.ship",
        "t.upsert",
        "t.inspect.files",
        "t.index.build",
        "t.timeline.get",
        "t.merge().when_matched_update",
        "t.services().run_once",
        "t.compactor().stop",
        "t.verify().to_dict",
    } <= names


def _changed(is_meant: Callable[[str], bool], change: Callable[[bytes], bytes]) -> Callable[[Files], Files]:
    return lambda files: {path: (change(data) if is_meant(path) else data, at) for path, (data, at) in files.items()}


def _without(is_meant: Callable[[str], bool]) -> Callable[[Files], Files]:
    return lambda files: {path: found for path, found in files.items() if not is_meant(path)}


def _half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _is_properties(path: str) -> bool:
    return path.endswith("hoodie.properties")


def _is_data(path: str) -> bool:
    return ".hoodie/" not in path


def _is_metadata(path: str) -> bool:
    return "/metadata/" in path


DAMAGE: dict[str, Callable[[Files], Files]] = {
    "no files": _without(lambda path: True),
    "properties that are no text": _changed(_is_properties, lambda data: b"\xff\xfe" * 40),
    "properties without a line": _changed(_is_properties, lambda data: b""),
    "cut instants": _changed(lambda path: "/timeline/" in path, _half),
    "cut data files": _changed(_is_data, _half),
    "no data files": _without(_is_data),
    "a cut metadata table": _changed(_is_metadata, _half),
    "no metadata table": _without(_is_metadata),
}


@pytest.mark.parametrize("kind", KINDS)
def test_calls_on_a_damaged_table_end_with_an_answer_or_an_error_of_ours(kind: str) -> None:
    template = template_of(kind)
    every = [(called, damage) for called in surface_of(kind) for damage in DAMAGE]
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for called, damage in sample_of(every, DAMAGED_KEPT, kind):
            table = template.copy(DAMAGE[damage](template.files))
            call = partial(_call, called, template, table)
            wrong += [f"{called.name} of a table with {damage}: {found}" for found in _complaints(call, table, None)]
    assert not wrong, "\n".join([f"{len(wrong)} calls:", *wrong])


REFUSED: dict[str, tuple[Callable[[hoodie.Table], object], str]] = {
    "an Arrow expression that SQL cannot say": (
        lambda table: table.count(where=pc.field("n") > pc.field("id")),
        r"where=\(n > id\): expected comparisons of columns with values",
    ),
    "seconds as a time": (
        lambda table: table.count(as_of=1_700_000_000),  # type: ignore[arg-type]
        r"as_of: expected an instant or an ISO date as text, a date or a datetime or None, found 1700000000 \(int\)",
    ),
    "an instant as a number": (
        lambda table: table.restore(2026112512),  # type: ignore[arg-type]
        r"savepoint: expected the requested time of an instant as text, found 2026112512 \(int\); write",
    ),
    "partitions in two forms": (
        lambda table: table.delete_partitions([{"city": "x"}, "city=x"]),
        r"partitions: expected a list of partition paths, found .*; write for example partitions=\[\"city=sf\"\]",
    ),
    "only what is wrong is shown": (
        lambda table: table.clean(properties={"hoodie.keep.max.commits": "30", "hoodie.keep.min.commits": None}),
        r"properties: expected a dict of texts by name or None, found {'hoodie.keep.min.commits': None} \(dict\)",
    ),
    "a condition as a key": (
        lambda table: table.delete("n = 1"),
        r"found the condition 'n = 1'; pass it to delete_where",
    ),
    "a text for a flag": (lambda table: table.clean("no"), "dry_run: expected True or False, found 'no'"),  # type: ignore[arg-type]
    "a number below 0": (lambda table: table.history(-1), "limit: expected a whole number from 0"),
    "an age below 0": (
        lambda table: table.repair(min_age_seconds=-1),
        "min_age_seconds: expected a finite number of seconds from 0, found -1",
    ),
    "a wait below 0": (
        lambda table: table.index.build(wait_seconds=-5.5),
        r"wait_seconds: expected a finite number of seconds from 0, found -5\.5",
    ),
    "an interval below 0": (
        lambda table: table.services(interval=-1),
        "interval: expected a finite number of seconds from 0, found -1",
    ),
    "lists as keys": (
        lambda table: table.read_keys([["a", 1]]),
        r"tuples of their values such as \[\('a', 1\)\], found list",
    ),
    "too few values of a key": (lambda table: table.read_keys([("a",)]), r"columns \['id', 'm'\].*found 1 values"),
    "a handle of this process": (pickle.dumps, "in this process, and no other can open it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_what_was_expected_and_found(case: str) -> None:
    call, message = REFUSED[case]
    template = template_of("merge-on-read, two keys")
    table = template.copy()
    with pytest.raises(hoodie.HoodieError, match=message):
        call(table)
    assert files_of(table) == template.files


WRONG_OPTIONS = {
    "misspelt": ({"hoodie.clean.comits.retained": "1"}, "did you mean 'hoodie.clean.commits.retained'"),
    "no option": ({"foo": "1"}, "unknown option 'foo'"),
    "a text for a number": ({"hoodie.clean.commits.retained": "x"}, "expected a whole number"),
    "no text": ({"hoodie.clean.commits.retained": None}, "properties: expected a dict of texts by name"),
}


@pytest.mark.parametrize("case", WRONG_OPTIONS)
def test_every_call_with_options_checks_them_first(case: str) -> None:
    """All methods of handles, and all functions, that take `properties`: nothing is read or changed before."""
    options, message = WRONG_OPTIONS[case]
    template = template_of("copy-on-write")
    takers = [called for called in surface_of("copy-on-write") if "properties" in called.parameters]
    assert {"hoodie.create", "t.rollback", "t.restore", "t.index.build", "t.alter.run", "t.stream"} <= {
        called.name for called in takers
    }
    for called in takers:
        table = template.copy()
        call = called.bound_to(table)
        with pytest.raises(hoodie.InvalidConfigError, match=message):
            call(**{**called.required(template), "properties": options})
        assert files_of(table) == template.files


def test_no_write_and_no_service_changes_what_is_fixed() -> None:
    template = template_of("copy-on-write")
    otherwise = {"t.downgrade", "t.index.build", "t.merge", "t.stream"}  # they take fewer options, or check them later
    takers = [called for called in surface_of("copy-on-write") if "properties" in called.parameters]
    takers = [called for called in takers if re.fullmatch(r"t\.\w+", called.name) and called.name not in otherwise]
    assert {"t.archive", "t.compact", "t.restore", "t.upgrade", "t.upsert"} <= {called.name for called in takers}
    for called in takers:
        table = template.copy()
        with pytest.raises(hoodie.InvalidConfigError, match=r"hoodie\.table\.type is fixed when the table is created"):
            called.bound_to(table)(**called.required(template), properties={"hoodie.table.type": "MERGE_ON_READ"})
        assert files_of(table) == template.files


DAYS = pa.schema(
    [
        ("id", pa.string()),
        ("day", pa.date32()),
        ("city", pa.string()),
        ("n", pa.int64()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


def of_day(key: str, day: int, city: str, n: int) -> dict[str, Any]:
    when = dt.datetime(2026, 1, day, 12, tzinfo=dt.UTC)
    return {"id": key, "day": when.date(), "city": city, "n": n, "t": when}


OF_DAYS = [of_day("a", 1, "sf", 1), of_day("b", 2, "sf", 2), of_day("c", 2, "nyc", 3), of_day("d", 3, "a/b", 4)]


@pytest.fixture
def days() -> hoodie.Table:
    """A table that is partitioned by two columns."""
    return new_table(DAYS, pa.Table.from_pylist(OF_DAYS, DAYS), partition_by=["city", "day"])


def ids(days: hoodie.Table, **how: Any) -> list[str]:
    return sorted(days.to_arrow("id", **how)["id"].to_pylist())


def test_a_condition_can_be_an_expression_of_pyarrow(days: hoodie.Table) -> None:
    n, city = pc.field("n"), pc.field("city")
    assert ids(days, where=(n > 1) & (city == "sf")) == ["b"]
    assert ids(days, where=~city.isin(["sf"]) | (n == 1)) == ["a", "c", "d"]
    assert ids(days, where=pc.field("t") >= dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)) == ["b", "c", "d"]
    assert days.count(n < 3) == 2
    assert days.explain(city == "nyc").file_slices == 1
    assert days.head(5, where=n == 4).num_rows == 1
    assert days.update({"n": 10}, where=n == 4).updated == 1
    assert days.delete_where(pc.field("id") == "a").deleted == 1
    with pytest.raises(hoodie.UnsupportedError, match="expected comparisons of columns with values"):
        days.count(n == pc.field("day"))


def test_an_instant_can_be_a_number(days: hoodie.Table) -> None:
    first, done = days.timeline.instants[0].requested_time, int(days.timeline.instants[0].completion_time or "")
    days.savepoint()
    days.upsert([of_day("e", 1, "sf", 1)])
    assert ids(days, as_of=done) == ["a", "b", "c", "d"]
    assert days.changes(since=done)["id"].to_pylist() == ["e"]  # type: ignore[arg-type]
    days.restore(int(first))  # type: ignore[arg-type]
    assert ids(days) == ["a", "b", "c", "d"]
    for number in (0, -20261127110540527, 1700000000, True, 20261127110540527.0):
        with pytest.raises(hoodie.InvalidConfigError, match="expected an instant"):
            days.to_arrow(as_of=number)  # type: ignore[arg-type]


def test_partitions_can_be_dicts_of_their_columns(days: hoodie.Table) -> None:
    day = dt.date(2026, 1, 2)
    assert days.delete_partitions([{"city": "sf", "day": day}]).deleted == 1
    assert days.delete_partitions([{"day": dt.date(2026, 1, 3), "city": "a/b"}]).deleted == 1
    assert ids(days) == ["a", "c"]
    with pytest.raises(hoodie.SchemaMismatchError, match="lack the partition columns"):
        days.delete_partitions([{"city": "nyc"}])
    with pytest.raises(hoodie.InvalidConfigError, match="no partitions"):
        days.delete_partitions([{"city": "la", "day": day}])
    with pytest.raises(hoodie.InvalidConfigError, match="list of partition paths"):
        days.delete_partitions([{"city": "la", "day": day}, "x"])
    assert ids(days) == ["a", "c"]


def test_secrets_are_not_shown() -> None:
    with pytest.raises(hoodie.InvalidConfigError, match="storage_options: expected a dict of texts") as caught:
        hoodie.open("s3://bucket/t", storage_options={"aws_secret_access_key": b"hidden"})
    assert "hidden" not in str(caught.value)


def test_what_has_one_meaning_is_taken(tmp_path: Path) -> None:
    table = hoodie.create(
        tmp_path / "t", pa.table(ROWS), record_key=["id", "m"], type="mor", properties={"hoodie.keep.min.commits": 20}
    )
    assert table.upsert(ROWS, extra_metadata={"run": 7, "again": True}).inserted == 2
    commit = str(table.inspect.instant(table.history()["instant"][0].as_py()))
    assert "'run': '7'" in commit
    assert "'again': 'true'" in commit
    assert table.read_keys([("a", 1), ("b", 7)])["id"].to_pylist() == ["a"]
    assert table.read_keys([Named(m=2, id="b")])["id"].to_pylist() == ["b"]
    assert table.update({"n": 5, "p": None}, where="id = 'a'").updated == 1
    assert (
        table.merge([{"id": "b", "m": 2, "n": 9}], on=["id", "m"]).when_matched_update({"n": "s.n"}).execute().updated
        == 1
    )
    five: Any = np.int64(5)
    assert table.head(five, columns=pd.Index(["n", "p"]), where="n > 4").sort_by("n").to_pylist() == [
        {"n": 5, "p": None},
        {"n": 9, "p": "y"},
    ]
    assert pickle.loads(pickle.dumps(table)).count() == 2


class Named(NamedTuple):
    """A key whose fields are in another order than the key columns."""

    m: int
    id: str
