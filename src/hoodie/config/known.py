"""All options, and the checks of given options."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hoodie.config import clustering, compaction, concurrency, indexes, retention, writes
from hoodie.config.hudi_options import hudi_options
from hoodie.config.option import Option
from hoodie.config.writes import MAX_FILE_BYTES, SMALL_FILE_BYTES
from hoodie.errors import InvalidConfigError

_MODULES = (writes, indexes, compaction, clustering, retention, concurrency)

_NEAR: Final = 0.9
"""How similar a known key must be to be suggested: a misspelling is, another option is not."""
_NEAR_WORD: Final = 0.8
"""The same for names without `hoodie.`, which are short."""

OPTIONS: Final[Mapping[str, Option[Any]]] = {
    option.key: option for module in _MODULES for option in vars(module).values() if isinstance(option, Option)
}
"""All options by their keys, in the order of the modules."""


def check_options(properties: Mapping[str, str], *, also_known: Iterable[str] = ()) -> None:
    """Refuse unknown keys and values that do not parse; `also_known` are further accepted keys (table properties).

    Raises: InvalidConfigError; the message names the most similar known key, ours or one of JVM Hudi.

    >>> check_options({"hoodie.index.typ": "simple"})
    Traceback (most recent call last):
    ...
    hoodie.errors.InvalidConfigError: unknown option 'hoodie.index.typ'; did you mean 'hoodie.index.type'?
    """
    known = {*OPTIONS, *also_known}
    for key in properties:
        if key in OPTIONS:
            OPTIONS[key].get(properties)
        elif key not in known:
            raise InvalidConfigError(
                f"unknown option {key!r}; {did_you_mean([key], known) or 'hoodie.config.OPTIONS lists all options'}"
            )


def did_you_mean(unknown: Iterable[str], known: Iterable[str]) -> str:
    """Return the question after a misspelt option: the most similar key of `known`, else of JVM Hudi; empty for none.

    >>> did_you_mean(["operaton", "x"], ["operation"]), did_you_mean(["hoodie.datasorce.write.operaton"], [])
    ("did you mean 'operation'?", "did you mean 'hoodie.datasource.write.operation'?")
    """
    listed, found = list(known), []
    for key in unknown:
        near = difflib.get_close_matches(key, listed, 1, _NEAR if "." in key else _NEAR_WORD)
        if not near and "." in key:
            names = difflib.get_close_matches(key.lower(), hudi_options(), 1, _NEAR)
            near = [hudi_options()[name].key for name in names if hudi_options()[name].key != key]
        found += near
    return f"did you mean {', '.join(map(repr, found))}?" if found else ""


def hint(unknown: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: `; did you mean …?`, or nothing if no known name is similar.

    >>> hint("recrod", ["record", "simple"]), hint("btree", ["record"])
    ("; did you mean 'record'?", '')
    """
    found = did_you_mean([unknown], known)
    return f"; {found}" if found else ""


def check_sizes(options: Mapping[str, str]) -> None:
    """Refuse options by which one file would be both full and small.

    Raises: InvalidConfigError: the limit of small files is above the maximum file size.
    """
    small, full = SMALL_FILE_BYTES.get(options), MAX_FILE_BYTES.get(options)
    if (SMALL_FILE_BYTES.key in options or MAX_FILE_BYTES.key in options) and small > full:
        raise InvalidConfigError(
            f"{SMALL_FILE_BYTES.key}={small} is above {MAX_FILE_BYTES.key}={full}: a file would be both full and "
            "small; lower the first option or raise the second"
        )
