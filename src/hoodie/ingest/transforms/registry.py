"""The kinds of transforms, by the names that job files and `hoodie.ingest` use."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from hoodie.arguments import shown
from hoodie.errors import InvalidConfigError
from hoodie.ingest.transforms.call import Function
from hoodie.ingest.transforms.cast import Cast
from hoodie.ingest.transforms.columns import Drop, Flatten, Rename
from hoodie.ingest.transforms.deduplicate import Deduplicate
from hoodie.ingest.transforms.sql import Sql
from hoodie.ingest.transforms.transform import Transform

KINDS: Final[Mapping[str, Any]] = {
    "sql": Sql,
    "function": Function,
    "flatten": Flatten,
    "cast": Cast,
    "rename": Rename,
    "drop": Drop,
    "deduplicate": Deduplicate,
}


def transforms_of(given: Any) -> tuple[Transform, ...]:
    """Return the transforms of an option: None, one of them, or a list, whose members follow each other.

    A transform is a query over `source`, a function, which gets the rows and returns rows, options such as
    `{"kind": "sql", "query": "…"}`, or an object of one of the kinds.

    Raises: InvalidConfigError for anything else, and as the class of the transform.
    """
    if given is None:
        return ()
    return tuple(_transform_of(one) for one in (given if isinstance(given, list | tuple) else (given,)))


def _transform_of(given: Any) -> Transform:
    if type(given) in KINDS.values():
        found: Transform = given
        return found
    if callable(given):
        return Function(call=given)
    if isinstance(given, str):
        return Sql(query=given)
    if not isinstance(given, Mapping):
        raise InvalidConfigError(
            'transform: expected a query, a function, or options such as {"kind": "sql", "query": "…"}, found '
            f"{shown(given)}"
        )
    options = dict(given)
    kind = options.pop("kind", None)
    if kind not in KINDS:
        raise InvalidConfigError(f"transform: kind={kind!r}: expected one of {', '.join(KINDS)}")
    known = inspect.signature(KINDS[kind]).parameters
    unknown = sorted(set(options) - set(known))
    if unknown:
        expected = ", ".join(known)
        raise InvalidConfigError(f"transform {kind}: unknown {', '.join(unknown)}: expected some of {expected}")
    missing = [n for n, one in known.items() if one.default is inspect.Parameter.empty and n not in options]
    if missing:
        raise InvalidConfigError(f"transform {kind}: {', '.join(missing)} is missing")
    made: Transform = KINDS[kind](**options)
    return made
