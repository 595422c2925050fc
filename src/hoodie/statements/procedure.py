"""What a procedure is: its parameters, in the order of Hudi's, and the function that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.statements.names import Names
from hoodie.table import Table


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
        if type(value) is not self.kind:
            raise InvalidConfigError(f"CALL {procedure}: {self.name} => {value!r}: expected {self.kind.__name__}")
        if self.name == "limit" and isinstance(value, int) and value < 0:
            raise InvalidConfigError(f"CALL {procedure}: limit => {value}: expected 0 or more")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: the values of all parameters, and the options of the caller."""

    names: Names
    values: Mapping[str, Any]
    properties: dict[str, str]

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

    def options(self, **named: str) -> dict[str, str]:
        """Return the options of the caller, those of the argument `options` ('a=1,b=2'), and arguments by option name.

        `named`: for each parameter the option that it stands for; a parameter that is None sets nothing.
        Raises: InvalidConfigError for text that is no list of options.
        """
        found = dict(self.properties)
        for pair in filter(None, (part.strip() for part in (self.values.get("options") or "").split(","))):
            name, equals, value = pair.partition("=")
            if not equals:
                raise InvalidConfigError(f"CALL: options => {self['options']!r}: expected 'name=value,name=value'")
            found[name.strip()] = value.strip()
        found.update({option: str(self[name]) for name, option in named.items() if self[name] is not None})
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure of `CALL`. `about` is one sentence for `CALL help()`."""

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Call], pa.Table]


def required(name: str, kind: type = str) -> Parameter:
    """Return a parameter that a call must give."""
    return Parameter(name=name, kind=kind, is_required=True)


def optional(name: str, default: Any = None, kind: type | None = None) -> Parameter:
    """Return a parameter with a default."""
    return Parameter(name=name, kind=kind or (str if default is None else type(default)), default=default)


def unsupported(name: str, kind: type = str, default: Any = None) -> Parameter:
    """Return a parameter of Hudi's that is refused, unless it has its default."""
    return Parameter(name=name, kind=kind, default=default, is_supported=False)


TABLE_OR_PATH = (optional("table"), optional("path"))
"""The first parameters of most procedures."""
