"""Values of a job file: variables of the environment, known keys, types, and paths beside the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from hoodie.arguments import shown
from hoodie.config.known import hint
from hoodie.errors import InvalidConfigError

_VARIABLE: Final = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "text": ((str,), "a text"),
    "flag": ((bool,), "true or false"),
    "whole": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "table": ((dict,), "a table of keys and values"),
    "texts": ((str, list), "a text or a list of texts"),
    "any": ((object,), "a value"),
}


def with_variables(value: Any, environment: Mapping[str, str], where: str) -> Any:
    """Return a value with the variables of the environment in place of `${NAME}`, in all its texts.

    `$${NAME}` becomes the text `${NAME}`. `where` names the value in errors; the messages have no values.

    Raises: InvalidConfigError for a variable that is not set.

    >>> with_variables({"servers": ["${HOST}:9092", "$${HOST}"]}, {"HOST": "a"}, "flow 'x'")
    {'servers': ['a:9092', '${HOST}']}
    """
    if isinstance(value, Mapping):
        return {key: with_variables(one, environment, f"{where}, {key}") for key, one in value.items()}
    if isinstance(value, list):
        return [with_variables(one, environment, where) for one in value]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return f"${{{name}}}"
        if name not in environment:
            raise InvalidConfigError(
                f"{where}: the environment variable {name} is not set; set it, or write $${{{name}}} for this text"
            )
        return environment[name]

    return _VARIABLE.sub(replaced, value)


def checked(given: Any, known: Mapping[str, str], where: str, *, elsewhere: Mapping[str, str] | None = None) -> None:
    """Refuse a table of a job file that has unknown keys, or values of another type than `known` has by key.

    `elsewhere`: for keys that belong to another place, where that is. Raises: InvalidConfigError.
    """
    if not isinstance(given, Mapping):
        raise InvalidConfigError(f"{where}: expected {_TYPES['table'][1]}, found {shown(given)}")
    for key, value in given.items():
        if key not in known:
            if elsewhere and key in elsewhere:
                raise InvalidConfigError(f"{where}: {key} belongs {elsewhere[key]}")
            similar = hint(key, known)
            raise InvalidConfigError(f"{where}: unknown {key!r}{similar or f'; expected some of {_listed(known)}'}")
        types, expected = _TYPES[known[key]]
        if not isinstance(value, types) or (isinstance(value, bool) and known[key] in ("whole", "number")):
            raise InvalidConfigError(f"{where}, {key}: expected {expected}, found {shown(value)}")


def unknown_options(options: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Refuse options that a source or a transform does not have, if a known one is similar; others it refuses itself.

    Raises: InvalidConfigError.
    """
    for key in options:
        if key != "kind" and key not in known and (similar := hint(key, known)):
            raise InvalidConfigError(f"{where}: unknown {key!r}{similar}")


def texts_of(given: Mapping[str, Any] | None, where: str) -> dict[str, str]:
    """Return options as texts: numbers, true and false as Hudi writes them. Raises: InvalidConfigError for others."""
    found = {}
    for key, value in flat(given or {}).items():
        if not isinstance(value, str | int | float):
            raise InvalidConfigError(f"{where}, {key}: expected a text, a number, true or false, found {shown(value)}")
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options whose keys have dots, which TOML reads as tables if they are not quoted.

    >>> flat({"hoodie": {"metadata": {"enable": True}}, "hoodie.index.type": "simple"})
    {'hoodie.metadata.enable': True, 'hoodie.index.type': 'simple'}
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{inner}": one for inner, one in flat(value).items()}
        else:
            found[key] = value
    return found


def beside(path: str, folder: str) -> str:
    """Return a path of a job file, which is relative to the folder of the file; a URI stays as it is.

    >>> beside("lake/trips", "/jobs"), beside("s3://lake/trips", "/jobs"), beside("/lake", "/jobs")
    ('/jobs/lake/trips', 's3://lake/trips', '/lake')
    """
    is_relative = path and "://" not in path and not path.startswith(("/", "~", "file:"))
    return f"{folder.rstrip('/')}/{path.removeprefix('./')}" if is_relative else path


def _listed(known: Collection[str]) -> str:
    return ", ".join(known)
