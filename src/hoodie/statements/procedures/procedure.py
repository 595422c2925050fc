"""What a procedure is: its parameters and columns, in the order of Hudi's, and the function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.records.condition import Condition
from hoodie.statements.names import Names
from hoodie.table import Table

TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
}
"""The types of columns by the names that `CALL help` shows."""
KINDS: Final[Mapping[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "double"}
"""The names of the types of parameters."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter. `is_supported`: false for a parameter of Hudi's that has no effect here, so that it is refused."""

    name: str
    kind: type = str
    default: Any = None
    is_required: bool = False
    is_supported: bool = True

    def checked(self, procedure: str, value: Any) -> Any:
        """Return the value of an argument. Raises: InvalidConfigError for another type; UnsupportedError."""
        if not self.is_supported and value != self.default:
            raise UnsupportedError(f"CALL {procedure}: argument {self.name!r} of Hudi is not supported here")
        if value is None:
            return self.default
        if self.kind is str and isinstance(value, int) and not isinstance(value, bool):
            return str(value)  # Instants may be written as numbers.
        if self.kind is float and type(value) is int:
            return float(value)
        if type(value) is not self.kind:
            raise InvalidConfigError(f"CALL {procedure}: {self.name} => {value!r}: expected {KINDS[self.kind]}")
        if self.name == "limit" and isinstance(value, int) and value < 0 and value != self.default:
            raise InvalidConfigError(f"CALL {procedure}: limit => {value}: expected 0 or more")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: the values of all parameters, and the options of the caller.

    `given`: the parameters that the call names; the others have their defaults.
    """

    names: Names
    values: Mapping[str, Any]
    properties: dict[str, str]
    given: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def table(self) -> Table:
        """The table of the arguments `table` or `path`. Raises: InvalidConfigError unless there is exactly one."""
        name, path = self.values.get("table"), self.values.get("path")
        if name is not None and path is None:
            return self.names.named(name)
        if path is not None and name is None:
            return self.names.at(path)
        raise InvalidConfigError("CALL: expected one of the arguments table => '…' and path => '…'")

    def names_in(self, parameter: str) -> list[str]:
        """Return the names that an argument has with commas between them; none of a procedure without the argument."""
        return [part.strip() for part in (self.values.get(parameter) or "").split(",") if part.strip()]

    def limited(self, rows: Iterable[Row]) -> Iterable[Row]:
        """Return the first rows, at most as many as the argument `limit`."""
        return islice(rows, self["limit"])

    def options(self, **named: str) -> dict[str, str]:
        """Return the options of the caller, those of the argument `options` ('a=1,b=2'), and arguments by option name.

        `named`: for each parameter the option that it stands for; a parameter that is None sets nothing. The default of
        a parameter sets an option that the caller does not have; as in JVM Hudi, it overrides a stored one.

        Raises: InvalidConfigError for text that is no list of options.
        """
        found = dict(self.properties)
        for pair in filter(None, (part.strip() for part in (self.values.get("options") or "").split(","))):
            name, equals, value = pair.partition("=")
            if not equals:
                raise InvalidConfigError(f"CALL: options => {self['options']!r}: expected 'name=value,name=value'")
            found[name.strip()] = value.strip()
        for name, option in named.items():
            if self[name] is not None and (name in self.given or option not in found):
                found[option] = str(self[name])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure of `CALL`. `about` is one sentence for `CALL help()`; `run` returns the rows as values by column."""

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    columns: pa.Schema
    run: Callable[[Call], Iterable[Row]]

    @property
    def takes_path(self) -> bool:
        """Whether `path` can name the table too, although Hudi's procedure has no such parameter."""
        required = {parameter.name: parameter.is_required for parameter in self.parameters}
        return required.get("table", False) and PATH.name not in required

    def rows(self, call: Call) -> pa.Table:
        """Run the procedure and return its rows: those that match the argument `filter`, if it has one.

        Raises: as the procedure; InvalidConfigError or SchemaMismatchError for a wrong filter.
        """
        text = call.values.get("filter")
        matching = Condition.of_call(text, lambda: self.columns.names).row_filter(self.columns) if text else None
        found = pa.Table.from_pylist(list(self.run(call)), schema=self.columns)
        return found if matching is None else matching.matching(found)


def procedure(
    *, parameters: tuple[Parameter, ...], columns: str
) -> Callable[[Callable[[Call], Iterable[Row]]], Procedure]:
    """Make a procedure of the function that runs it: with its name, and with the first line of its docstring.

    `columns`: written as `name type, …`.
    """

    def made(run: Callable[[Call], Iterable[Row]]) -> Procedure:
        about = (run.__doc__ or "").partition("\n")[0]
        return Procedure(name=run.__name__, about=about, parameters=parameters, columns=columns_of(columns), run=run)

    return made


def required(name: str) -> Parameter:
    """Return a parameter that a call must give."""
    return Parameter(name=name, is_required=True)


def optional(name: str, default: Any = None, kind: type | None = None) -> Parameter:
    """Return a parameter with a default."""
    return Parameter(name=name, kind=kind or (str if default is None else type(default)), default=default)


def unsupported(name: str, kind: type = str, default: Any = None) -> Parameter:
    """Return a parameter of Hudi's that is refused, unless it has its default."""
    return Parameter(name=name, kind=kind, default=default, is_supported=False)


def columns_of(text: str) -> pa.Schema:
    """Return the columns of a procedure, written as `name type, …`."""
    pairs = (part.strip().rsplit(" ", 1) for part in text.split(","))
    return pa.schema([(name, TYPES[kind]) for name, kind in pairs])


OPTIONS: Final = optional("options")
"""The parameter with options of the write or service, as `name=value,name=value`."""
FILTER: Final = optional("filter", "")
"""The parameter whose value is a condition in SQL over the columns of the rows."""
PATH: Final = optional("path")
"""The parameter that names a table by its path."""
TABLE: Final = (optional("table"), PATH)
"""The first parameters of most procedures."""
