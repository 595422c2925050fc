"""The kinds of sources, by the names that job files and `hoodie.ingest` use."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Final

from hoodie.errors import InvalidConfigError
from hoodie.ingest.source import Source

KINDS: Final[Mapping[str, str]] = {
    "files": "files:Files",
    "kafka": "kafka:Kafka",
    "jdbc": "jdbc:Jdbc",
    "adbc": "adbc:Adbc",
    "hudi": "hudi:Hudi",
    "query": "query:Query",
    "function": "function:Function",
}
"""Module of this package and class of each kind."""


def source_of(options: object) -> Source:
    """Return the source with these options; `kind` names its class, the others are its fields.

    Raises: InvalidConfigError for an unknown kind or option, and as the class.
    """
    if not isinstance(options, Mapping):
        raise InvalidConfigError(
            f"source: expected a hoodie.Source with the method plan, or options such as "
            f'{{"kind": "files", "path": "landing"}}, found {type(options).__name__}'
        )
    given = dict(options)
    kind = given.pop("kind", None)
    if kind not in KINDS:
        raise InvalidConfigError(f"source: kind={kind!r}: expected one of {', '.join(KINDS)}")
    found = class_of(kind)
    known = inspect.signature(found).parameters
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidConfigError(f"source {kind}: unknown {', '.join(unknown)}: expected some of {', '.join(known)}")
    missing = [n for n, one in known.items() if one.default is inspect.Parameter.empty and n not in given]
    if missing:
        raise InvalidConfigError(f"source {kind}: {', '.join(missing)} is missing")
    source: Source = found(**given)
    return source


def class_of(kind: str) -> Any:
    """Return the class of a kind."""
    module, _, name = KINDS[kind].partition(":")
    return getattr(importlib.import_module(f"hoodie.ingest.sources.{module}"), name)
