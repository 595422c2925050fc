"""Whatever a caller passes: a right answer, or an error of this library; a refused call changes nothing.

The public functions and methods are found by introspection, so that a new one is called without a new line here.
`HOODIE_TEST_ALL=1` calls each with every odd value on every kind of table; otherwise a sample, by HOODIE_TEST_SEED.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest

import hoodie
from hoodie.storage.memory import MemoryStore
from tests.contract.odd_values import DATA, VALUES
from tests.contract.public_surface import KINDS, Callable_, Files, Template, end, files_of, surface
from tests.support.samples import sample_of

SECONDS_MAX = 5.0  # of this process's CPU, for one call
CASES_KEPT = 2000  # of each kind of table

template_of = cache(Template)
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


DAMAGE: dict[str, Callable[[Files], Files]] = {
    "no files": lambda files: {},
    "properties that are no text": lambda files: {
        path: (b"\xff\xfe" * 40, at) if path.endswith("hoodie.properties") else (data, at)
        for path, (data, at) in files.items()
    },
    "properties without a line": lambda files: {
        path: (b"", at) if path.endswith("hoodie.properties") else (data, at) for path, (data, at) in files.items()
    },
    "cut instants": lambda files: {
        path: (data[: len(data) // 2], at) if "/timeline/" in path else (data, at) for path, (data, at) in files.items()
    },
    "cut data files": lambda files: {
        path: (data[: len(data) // 2], at) if ".hoodie/" not in path else (data, at)
        for path, (data, at) in files.items()
    },
    "no data files": lambda files: {path: found for path, found in files.items() if ".hoodie/" in path},
    "a cut metadata table": lambda files: {
        path: (data[: len(data) // 2], at) if "/metadata/" in path else (data, at) for path, (data, at) in files.items()
    },
    "no metadata table": lambda files: {path: found for path, found in files.items() if "/metadata/" not in path},
}


@pytest.mark.parametrize("kind", KINDS)
def test_calls_on_a_damaged_table_end_with_an_answer_or_an_error_of_ours(kind: str) -> None:
    template = template_of(kind)
    every = [(called, damage) for called in surface_of(kind) for damage in DAMAGE]
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for called, damage in sample_of(every, 250, kind):
            table = template.copy(DAMAGE[damage](template.files))
            call = partial(_call, called, template, table)
            wrong += [f"{called.name} of a table with {damage}: {found}" for found in _complaints(call, table, None)]
    assert not wrong, "\n".join([f"{len(wrong)} calls:", *wrong])
