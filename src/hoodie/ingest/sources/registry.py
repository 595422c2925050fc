"""The kinds of sources, by the names that job files and `hoodie.ingest` use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

from hoodie.errors import InvalidConfigError
from hoodie.ingest.options import made
from hoodie.ingest.source import Source

KINDS: Final[Mapping[str, str]] = {
    "files": "files:Files",
    "kafka": "kafka:Kafka",
    "jdbc": "jdbc:Jdbc",
    "adbc": "adbc:Adbc",
    "hudi": "hudi:Hudi",
    "stream": "stream:Stream",
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
    kind = options.get("kind")
    # The module of a source is loaded if the source is used.
    known = {name: class_of(name) if name == kind else object for name in KINDS}
    source: Source = made(options, known, "source")
    return source


def class_of(kind: str) -> Any:
    module, _, name = KINDS[kind].partition(":")
    return getattr(importlib.import_module(f"hoodie.ingest.sources.{module}"), name)
