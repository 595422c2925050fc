"""The project's source files, parsed once: what the tidy tests look at."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "hoodie"
PUBLIC = "hoodie"  # the room of src/hoodie/__init__.py: the names users import


@dataclass(frozen=True)
class Source:
    """One Python file: its path in the project, its text, its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """The path relative to the project, with `/`."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def room(self) -> str:
        """The room of a file of the package; `hoodie` for the package's own `__init__` and `__main__`."""
        first = self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        return PUBLIC if first in {"__init__", "__main__"} else first

    @property
    def module(self) -> str:
        """The name by which a module of the package is imported."""
        return ".".join(self.path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full name of all that is imported, inside functions too: `from a import b` gives `a.b`."""
        return iter(self._loads[0])

    def imports_by_name(self) -> Iterator[tuple[int, str]]:
        """Line and name of each call of `import_module`; `*` stands for what is put into the name."""
        return iter(self._loads[1])

    @cached_property
    def _loads(self) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        imports, by_name = [], []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                imports += [(node.lineno, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imports += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
            elif isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("import_module"):
                name = ast.unparse(node.args[0]).removeprefix("f").strip("'\"")
                by_name.append((node.lineno, re.sub(r"\{.*?\}", "*", name)))
        return imports, by_name


@cache
def package_sources() -> tuple[Source, ...]:
    """Every module of the package."""
    return _parse(PACKAGE)


@cache
def all_test_sources() -> tuple[Source, ...]:
    """Every module of the tests."""
    return _parse(ROOT / "tests")


def _parse(folder: Path) -> tuple[Source, ...]:
    paths = sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
    texts = ((path, path.read_text(encoding="utf-8")) for path in paths)
    return tuple(Source(path, text, ast.parse(text, filename=str(path))) for path, text in texts)


def for_each(items: Iterable[T]) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Make one test of a rule for each of many files: the test names every file that breaks the rule.

    Thousands of tests of a millisecond each would take a minute to be collected and counted.
    """

    def decorate(rule: Callable[[T], None]) -> Callable[[], None]:
        def test() -> None:
            broken: list[str] = []
            for item in items:
                try:
                    rule(item)
                except AssertionError as error:
                    broken.append(f"{getattr(item, 'name', item)}: {error}")
            assert not broken, "\n".join(broken)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return decorate
