"""Values of a job file: variables of the environment, known keys, types, and paths beside the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hoodie.config.known import hint
from hoodie.errors import InvalidConfigError
from hoodie.ingest.options import fits, name_of, require, text_of

_VARIABLE: Final = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")


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


def check_keys(given: Any, known: Mapping[str, Any], where: str, *, elsewhere: Mapping[str, str] | None = None) -> None:
    """Refuse a table of a job file that has unknown keys, or values of another type than `known` has by key.

    `elsewhere`: for keys that belong to another place, where that is. Raises: InvalidConfigError.
    """
    require(isinstance(given, Mapping), where, name_of(Mapping[str, Any]), given)
    for key, value in given.items():
        if key in known:
            require(fits(value, known[key]), f"{where}, {key}", name_of(known[key]), value)
        elif elsewhere and key in elsewhere:
            raise InvalidConfigError(f"{where}: {key} belongs {elsewhere[key]}")
        else:
            similar = hint(key, known) or f"; expected some of {', '.join(known)}"
            raise InvalidConfigError(f"{where}: unknown {key!r}{similar}")


def texts_of(given: Mapping[str, Any] | None, where: str) -> dict[str, str]:
    """Return options as texts: numbers, true and false as Hudi writes them. Raises: InvalidConfigError for others."""
    found = flat(given or {})
    for key, value in found.items():
        require(isinstance(value, str | int | float), f"{where}, {key}", "a text, a number, true or false", value)
    return {key: text_of(value) for key, value in found.items()}


def flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options whose keys have dots, which TOML reads as tables if they are not quoted.

    >>> flat({"hoodie": {"metadata": {"enable": True}}, "hoodie.index.type": "simple"})
    {'hoodie.metadata.enable': True, 'hoodie.index.type': 'simple'}
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        found |= (
            {f"{key}.{name}": one for name, one in flat(value).items()} if isinstance(value, Mapping) else {key: value}
        )
    return found


def beside(path: str, folder: str) -> str:
    """Return a path of a job file, which is relative to the folder of the file; a URI stays as it is.

    >>> beside("lake/trips", "/jobs"), beside("s3://lake/trips", "/jobs"), beside("/lake", "/jobs")
    ('/jobs/lake/trips', 's3://lake/trips', '/lake')
    """
    is_relative = path and "://" not in path and not path.startswith(("/", "~", "file:"))
    return f"{folder.rstrip('/')}/{path.removeprefix('./')}" if is_relative else path
