"""All public functions and methods, found by introspection, and a right value for each of their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pyarrow as pa

import hoodie
from hoodie.storage.memory import MemoryStore

ROWS = {"id": ["a", "b"], "m": [1, 2], "p": ["x", "y"], "n": [1, 2]}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "copy-on-write": {"record_key": "id", "partition_by": "p", "ordering": "n"},
    "merge-on-read, two keys": {"record_key": ["id", "m"], "type": "merge_on_read", "index": "simple"},
    "automatic keys": {"partition_by": "p"},
}
# Objects of these rooms are what methods return to users; others, such as a view, are the library's own.
ROOMS = ("table", "write", "read", "results", "services", "timeline")
Files = dict[str, tuple[bytes, int]]
Call = Callable[..., Any]


class Template:
    """A table with a savepoint and two commits; copies of it in memory cost next to nothing."""

    def __init__(self, kind: str) -> None:
        table = hoodie.create(f"memory://surface {kind}", pa.table(ROWS), **KINDS[kind])
        self.first = table.insert(ROWS).instant
        table.savepoint()
        table.insert({"id": ["c"], "m": [3], "p": ["x"], "n": [3]})
        self.partition = sorted(table.inspect.partitions()["partition_path"].to_pylist())[0]
        self.files = files_of(table)

    def copy(self, files: Mapping[str, tuple[bytes, int]] | None = None) -> hoodie.Table:
        """Return a handle of a new copy, or of other files; the copy before is gone."""
        store = MemoryStore("a copy")
        store._content.files.clear()
        store._content.files.update(self.files if files is None else files)
        return hoodie.Table(store)

    def right(self, name: str, parameter: inspect.Parameter) -> Any:
        """Return a value that an argument accepts: by its name, otherwise by its annotation."""
        by_name: dict[str, Callable[[], Any]] = {
            "keys": lambda: ["a"],
            "data_or_keys": lambda: pa.table({"id": ["a"], "m": [1], "p": ["x"]}),
            "where": lambda: "n > 1",
            "assignments": lambda: {"n": "n + 1"},
            "on": lambda: "t.id = s.id AND t.m = s.m AND t.p = s.p",
            "set": lambda: {"n": "s.n"},
            "values": lambda: {"id": "s.id", "m": "s.m", "p": "s.p"},
            "partitions": lambda: [self.partition],
            "statement": lambda: "CALL show_commits(table => 't')",
            "path": lambda: "memory://a new table",
            "schema": lambda: pa.table(ROWS).schema,
            "spark": lambda: None,
            "keep": lambda: lambda instant: True,
            "name": lambda: "record",
            "comment": lambda: "a",
        }
        instants = dict.fromkeys(("instant", "savepoint", "requested_time", "since"), partial(str, self.first))
        annotations: dict[str, Callable[[], Any]] = {"str": lambda: "a", "int": lambda: 0, "Any": lambda: ROWS}
        made: dict[str, Callable[[], Any]] = {**annotations, **by_name, **instants}
        if name in made:
            return made[name]()
        return made[str(parameter.annotation)]() if str(parameter.annotation) in made else print


template_of = cache(Template)


@dataclass(frozen=True)
class Callable_:
    """A public function or method: its name, its signature, and how to get it for a table."""

    name: str
    parameters: Mapping[str, inspect.Parameter]
    bound_to: Callable[[hoodie.Table], Call]

    def required(self, template: Template) -> dict[str, Any]:
        """Return right values of the arguments without default."""
        return {
            name: template.right(name, parameter)
            for name, parameter in self.parameters.items()
            if parameter.default is inspect.Parameter.empty
        }


def surface(template: Template) -> list[Callable_]:
    """Return every function of `hoodie.__all__`, and every method of handles and of the objects that methods return."""
    found = list(_functions())
    seen: set[type] = set()
    pending: list[tuple[str, Callable[[hoodie.Table], Any]]] = [("t", lambda table: table)]
    while pending:
        path, get = pending.pop(0)
        try:
            owner = get(template.copy())
        except hoodie.HoodieError:  # this kind of table refuses the call
            continue
        room = type(owner).__module__.split(".")
        if type(owner) in seen or room[0] != "hoodie" or room[1] not in ROOMS:
            continue
        seen.add(type(owner))
        for name, member in inspect.getmembers_static(type(owner)):
            if name.startswith("_"):
                continue
            if inspect.isfunction(member):
                method = Callable_(f"{path}.{name}", _parameters(member), partial(_method, get, name))
                found.append(method)
                pending.append((f"{path}.{name}()", partial(_result, method, template)))
            elif isinstance(member, property):
                pending.append((f"{path}.{name}", partial(_method, get, name)))
    return found


def _functions() -> Iterator[Callable_]:
    for name in hoodie.__all__:
        function = getattr(hoodie, name)
        if inspect.isfunction(function):
            extra = {"tables": "t"} if name == "sql" else {}
            yield Callable_(f"hoodie.{name}", _parameters(function), partial(_function, function, bool(extra)))


def _function(function: Call, takes_tables: bool, table: hoodie.Table) -> Call:
    return partial(function, tables={"t": table}) if takes_tables else function


def _parameters(function: Call) -> dict[str, inspect.Parameter]:
    return {name: found for name, found in inspect.signature(function).parameters.items() if name != "self"}


def _method(get: Callable[[hoodie.Table], Any], name: str, table: hoodie.Table) -> Any:
    return getattr(get(table), name)


def _result(method: Callable_, template: Template, table: hoodie.Table) -> Any:
    """Return what a method returns for right arguments."""
    found = method.bound_to(table)(**method.required(template))
    if hasattr(found, "stop"):
        found.stop()
    return found


def end(found: object) -> None:
    """Stop the thread that a call started, and execute the merge that it built."""
    if hasattr(found, "stop"):
        found.stop()
    if type(found).__name__ == "TableMerger" and found._merge.clauses:  # type: ignore[attr-defined]
        found.execute()  # type: ignore[attr-defined]


def files_of(table: hoodie.Table) -> Files:
    """Return the files of a table in memory."""
    store = table._context.state.store
    assert isinstance(store, MemoryStore)
    return dict(store._content.files)
