"""Modules and functions stay small enough to be read in one sitting."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

import pytest

from tests.tidy.sources import Source, all_test_sources, for_each, package_sources

MODULE_LINES_TO_RECONSIDER = 500
MODULE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
CONFTEST_LINES_MAX = 150

each_source = for_each(package_sources() + all_test_sources())


@pytest.mark.filterwarnings("default:.*does it do one job:UserWarning")
@each_source
def test_modules_are_small(source: Source) -> None:
    lines = source.text.count("\n")
    limit = CONFTEST_LINES_MAX if source.path.name == "conftest.py" else MODULE_LINES_MAX
    assert lines <= limit, f"{source.name} has {lines} lines: split it (limit {limit})"
    if lines > MODULE_LINES_TO_RECONSIDER:
        warnings.warn(f"{source.name} has {lines} lines: does it do one job?", stacklevel=1)


@each_source
def test_functions_are_small(source: Source) -> None:
    wrong = [
        f"{source.name}:{function.lineno} {function.name} has {lines} lines of code"
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := sum(1 for _ in _lines_of_code(source, function))) > FUNCTION_LINES_MAX
    ]
    assert not wrong, f"a function has at most {FUNCTION_LINES_MAX} lines of code: {wrong}"


def _lines_of_code(source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[int]:
    """Numbers of the function's lines without its docstring, comments and blank lines."""
    lines = source.text.splitlines()
    docstring = function.body[0] if ast.get_docstring(function, clean=False) is not None else None
    for number in range(function.lineno, (function.end_lineno or function.lineno) + 1):
        in_docstring = docstring is not None and docstring.lineno <= number <= (docstring.end_lineno or 0)
        text = lines[number - 1].strip()
        if text and not text.startswith("#") and not in_docstring:
            yield number
