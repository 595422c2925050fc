"""Every function, class, method and constant of the package has a user in the package; tests are no users.

Types are not inferred: a method counts as used where an attribute of its name is read. Names of modules are followed
through imports, and through packages that export them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from hoodie.cli.app import GROUPS, MODULE_OF
from hoodie.ingest.sources.registry import KINDS
from tests.tidy.sources import PUBLIC, ROOT, Source, package_sources

# Without a user in the package, each with its reason.
_DOUBLES = "a double for tests"
ALLOWED = {
    "hoodie.commit.steps.watching": "tests interleave writers by it",
    "hoodie.ingest.sys": "`hoodie.ingest(…)` calls the module, whose class is set there",
    "hoodie.records.sql.parse._Parser._parse_partition": "the parser of sqlglot calls it",
    "hoodie.storage.opening.register_store": _DOUBLES,
    "hoodie.storage.objects._RangedInput.seekable": "pyarrow asks the files that it is given",
    "hoodie.spark.takeover._Writer.insertInto": "users call it, as a method of PySpark's writer",
    "hoodie.timeline.owner.forget_all": "tests play the death of a process by it",
}

# The command line and CALL run functions with these decorators; notebooks call methods of these names.
CALLED_BY_DECORATOR = {"command", "callback", "procedure"}
CALLED_BY_NAME = {"_repr_html_"}

# The command line loads the module of the called command by name.
COMMANDS = {f"hoodie.cli.{module}.{name.replace('-', '_')}" for name, module in MODULE_OF.items()} | {
    f"hoodie.cli.{module}.app" for module in GROUPS.values()
}

# The registry of sources loads their classes by name.
SOURCES = {f"hoodie.ingest.sources.{place.replace(':', '.')}" for place in KINDS.values()}

# This package is loaded by name, so what it exports is matched like a method.
LOADED_BY_NAME = "hoodie.spark"

# Users hold what `hoodie` exports, and the classes of these rooms that public members of such classes return.
ROOMS_OF_USERS = {PUBLIC, "table", "write", "read", "results", "services"}

# Bases that call no method of a subclass. Any other base from outside of the package may call all of its methods.
BASES_WITHOUT_CALLBACKS = {"ABC", "Enum", "Exception", "Generic", "IntEnum", "NamedTuple", "Protocol", "StrEnum"}


@dataclass(frozen=True, eq=False)
class Definition:
    """A name that the top of a module defines, or a method; `name` is such as `hoodie.table.Table.upsert`."""

    name: str
    source: Source
    node: ast.stmt
    class_node: ast.ClassDef | None = None

    @property
    def place(self) -> str:
        """File, line and name."""
        return f"{self.source.name}:{self.node.lineno} {self.name}"

    @property
    def last_name(self) -> str:
        """The name without module and class."""
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """The module or class that holds it."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Use:
    """A place that reads a name."""

    source: Source
    line: int

    def is_inside(self, definition: Definition) -> bool:
        """Whether the place is a part of the definition."""
        node = definition.node
        return self.source is definition.source and node.lineno <= self.line <= (node.end_lineno or node.lineno)


def test_everything_has_a_user() -> None:
    dead = [found.place for found in _unused() if found.name not in ALLOWED]
    assert not dead, "nothing in src/ uses these, delete them:\n" + "\n".join(dead)


def test_every_exception_is_needed() -> None:
    needless = ALLOWED.keys() - {found.name for found in _unused()}
    assert not needless, f"these have users, or are gone: {needless}"


@cache
def _unused() -> tuple[Definition, ...]:
    """Definitions that nothing uses, or only they themselves or others of them that are not allowed."""
    held = _names_that_users_hold()
    asked = [found for found in _definitions() if not _is_called_from_outside(found, held)]
    dead: set[Definition] = set()
    while True:
        unused = [one for one in asked if all(_is_inside_any(use, {one, *dead}) for use in _uses_of(one))]
        found = {one for one in unused if one.name not in ALLOWED}
        if found == dead:
            return tuple(unused)
        dead = found


def _is_inside_any(use: Use, definitions: Iterable[Definition]) -> bool:
    return any(use.is_inside(definition) for definition in definitions)


def _is_called_from_outside(definition: Definition, held: frozenset[str]) -> bool:
    name = definition.last_name
    if name.startswith("__") or name in CALLED_BY_NAME or definition.name in held or definition.name in _commands():
        return True
    decorators = [node.func for node in getattr(definition.node, "decorator_list", []) if isinstance(node, ast.Call)]
    if any(ast.unparse(node).rpartition(".")[2] in CALLED_BY_DECORATOR for node in decorators):
        return True
    if definition.class_node is None:
        return False
    is_of_users = definition.owner in held and not name.startswith("_")
    return is_of_users or any(_is_foreign(base, definition.source) for base in definition.class_node.bases)


@cache
def _commands() -> frozenset[str]:
    return frozenset(_resolve(name) for name in COMMANDS | SOURCES)


def _is_foreign(base: ast.expr, source: Source) -> bool:
    """Whether a base class is of another package, which may call what a subclass defines."""
    name = _full_name(base.value if isinstance(base, ast.Subscript) else base, source)
    return not name.startswith("hoodie.") and name.rpartition(".")[2] not in BASES_WITHOUT_CALLBACKS


@cache
def _definitions() -> tuple[Definition, ...]:
    found = []
    for source in package_sources():
        module = _module(source)
        for node in source.tree.body:
            found += [Definition(f"{module}.{name}", source, node) for name in _names_defined(node)]
            if isinstance(node, ast.ClassDef):
                found += [
                    Definition(f"{module}.{node.name}.{inner.name}", source, inner, node)
                    for inner in node.body
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
    return tuple(found)


def _names_defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _uses_of(definition: Definition) -> list[Use]:
    names, attributes = _uses()
    if definition.class_node is not None:
        return attributes.get(definition.last_name, [])
    found = names.get(definition.name, [])
    if definition.name == _resolve(f"{LOADED_BY_NAME}.{definition.last_name}"):
        found = [*found, *attributes.get(definition.last_name, [])]
    return found


@cache
def _uses() -> tuple[dict[str, list[Use]], dict[str, list[Use]]]:
    """Places that read a name, by its full name; places that read an attribute, by the name of the attribute."""
    names: dict[str, list[Use]] = {}
    attributes: dict[str, list[Use]] = {}
    for source in package_sources():
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            names.setdefault(_full_name(node, source), []).append(Use(source, node.lineno))
            if isinstance(node, ast.Attribute):
                # The line of the attribute: a chain of calls may stand on several.
                attributes.setdefault(node.attr, []).append(Use(source, node.end_lineno or node.lineno))
    return names, attributes


def _full_name(node: ast.expr, source: Source) -> str:
    """What `a` or `a.b.c` stands for in a module; empty for other expressions."""
    if isinstance(node, ast.Name):
        return _resolve(f"{_module(source)}.{node.id}")
    if isinstance(node, ast.Attribute):
        owner = _full_name(node.value, source)
        return _resolve(f"{owner}.{node.attr}") if owner else ""
    return ""


def _resolve(name: str) -> str:
    """Follow imports to the module that defines the name."""
    imports = _imports()
    while imports.get(name, name) != name:
        name = imports[name]
    return name


@cache
def _imports() -> dict[str, str]:
    """Full names that imports define, and what they stand for.

    `hoodie.spark.register` stands for `hoodie.spark.datasource.register`.
    """
    found = {}
    for source in package_sources():
        module = _module(source)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom):
                found.update(
                    {f"{module}.{name.asname or name.name}": f"{node.module}.{name.name}" for name in node.names}
                )
            elif isinstance(node, ast.Import):
                tops = ((name, name.name.partition(".")[0]) for name in node.names)
                found.update(
                    {f"{module}.{name.asname or top}": name.name if name.asname else top for name, top in tops}
                )
    return found


@cache
def _module(source: Source) -> str:
    path = source.path.relative_to(ROOT / "src").with_suffix("")
    return ".".join(path.parts).removesuffix(".__init__")


@cache
def _names_that_users_hold() -> frozenset[str]:
    exports = next(source for source in package_sources() if _module(source) == PUBLIC)
    exported = next(
        node.value for node in exports.tree.body if isinstance(node, ast.Assign) and "__all__" in _names_defined(node)
    )
    wanted = {_resolve(f"{PUBLIC}.{name}") for name in ast.literal_eval(exported)}
    classes = {found.name: found for found in _definitions() if isinstance(found.node, ast.ClassDef)}
    held: set[str] = set()
    while wanted:
        name = wanted.pop()
        held.add(name)
        if name in classes:
            wanted |= set(_names_of_bases(classes[name])) - held
            returned = set(_names_returned(classes[name])) & classes.keys()
            wanted |= {name for name in returned - held if classes[name].source.room in ROOMS_OF_USERS}
    return frozenset(held)


def _names_of_bases(definition: Definition) -> Iterator[str]:
    """Full names of the classes from which a class inherits: their public methods are methods of the class."""
    yield from (_full_name(base, definition.source) for base in getattr(definition.node, "bases", []))


def _names_returned(definition: Definition) -> Iterator[str]:
    """Full names in the annotations of public fields, and of what public methods return."""
    for inner in getattr(definition.node, "body", []):
        annotation: ast.expr | None = None
        if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
            annotation = inner.returns
        elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            annotation = None if inner.target.id.startswith("_") else inner.annotation
        if annotation is not None:
            yield from (
                _full_name(part, definition.source) for part in ast.walk(annotation) if isinstance(part, ast.Name)
            )
