"""Whatever text a command line has: an answer, or one line of ours; never a traceback.

The commands and their arguments are found by introspection, so that a new one is called without a new line here.
"""

from __future__ import annotations

import io
import traceback
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from hoodie.cli import main
from hoodie.cli.app import build_app
from tests.contract.public_surface import template_of
from tests.support.samples import sample_of

CASES_KEPT = 250
TEXTS = {
    "nothing": "",
    "blank": "  ",
    "a byte that is no text": "a\udcffb",
    "control characters": "a\x1b[31m\n\r\x07",
    "not ASCII": "Zürich \N{PILE OF POO} \u202e",
    "long text": "x" * 50_000,
    "quotes": 'it\'s `x` "y"',
    "a number": "17",
    "a number below 0": "-1",
    "a huge number": "9" * 40,
    "a number above all": "1e999",
    "NaN": "nan",
    "no day": "2026-13-45",
    "the year 0": "0000-01-01",
    "the year 99999": "99999-01-01T00:00:00",
    "a cut time": "2026111",
    "an open object": '{"id": ',
    "an open list": "[1",
    "a pair": "a=b",
    "a pair without a name": "=b",
    "an unknown option": "hoodie.no.such=1",
    "a condition": "n > 1",
    "a condition that overflows": "n > 9223372036854775807 + 1",
    "a condition without an end": "n > (",
    "a path": "../../etc/passwd",
    "a URI": "s9://bucket/x",
    "names": "id,,n",
    "null": "null",
}
# Runs until it is stopped, or starts Spark.
LEFT_OUT = {"demo", "services run", "ui"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Every command: its words, and its parameters."""
    if hasattr(command, "commands"):
        for name, found in sorted(command.commands.items()):
            yield from commands(found, (*path, name))
    elif " ".join(path) not in LEFT_OUT:
        yield path, [one for one in command.params if one.name != "help" and not getattr(one, "is_flag", False)]


def line(words: tuple[str, ...], parameters: list[Any], odd: Any, text: str, right: dict[str, str]) -> list[str]:
    """A command line with right values of the needed parameters, and an odd one."""
    options = [f"{odd.opts[0]}={text}"] if odd.param_type_name == "option" else []
    for one in parameters:
        if one is not odd and one.required and one.param_type_name == "option":
            options.append(f"{one.opts[0]}={right.get(one.name, 'n')}")
    needed = [one for one in parameters if one.param_type_name == "argument" and (one.required or one is odd)]
    return [*words, *options, "--", *(text if one is odd else right.get(one.name, "a") for one in needed)]


def test_odd_texts_are_answered_or_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.json").write_text('{"id": "a", "m": 1, "p": "x", "n": 1}\n', encoding="utf-8")
    template = template_of("copy-on-write")
    right = {"table": "memory://a copy", "path": "memory://a copy", "files": "rows.json", "instant": template.first}
    group = typer.main.get_command(build_app([]))
    cases = [
        (words, parameters, odd, name) for words, parameters in commands(group) for odd in parameters for name in TEXTS
    ]
    wrong = []
    for words, parameters, odd, name in sample_of(cases, CASES_KEPT, "command lines"):
        template.copy()
        found = _complaint(line(words, parameters, odd, TEXTS[name], right))
        wrong += [f"hoodie {' '.join(words)} with {odd.name}=<{name}>: {found}"] if found else []
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} calls:", *wrong])


def _complaint(arguments: list[str]) -> str:
    """What is wrong with how a command ended; nothing for an exit code, with words on standard error if it failed."""
    errors = io.StringIO()
    try:
        with (
            redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")),
            redirect_stderr(errors),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            main(arguments)
    except SystemExit as exit_:
        is_told = exit_.code == 0 or bool(errors.getvalue().strip())
        return "" if exit_.code in (0, 1, 2) and is_told else f"ended with {exit_.code} and {errors.getvalue()!r}"
    except (Exception, click.ClickException) as error:  # what the test looks for
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {at.filename}:{at.lineno}"
    return "did not exit"
