"""Index definitions: the description of the metadata table's indexes in `.hoodie/.index_defs/index.json`.

docs/format/metadata.md §3.11. An index is used if `hoodie.table.metadata.partitions` contains it. Its definition stores
the kind of the index and its columns.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.format.json_text import parse_json_object
from hoodie.metadata.paths import INDEX_DEFINITIONS
from hoodie.storage import Store

_DEFINITIONS = "indexDefinitions"


def read_definition(store: Store, partition: str) -> Mapping[str, Any] | None:
    """Read the definition of a metadata partition; None if it has none.

    Raises: CorruptFileError if the definitions do not parse.
    """
    definition = _definitions(_read(store), store).get(partition)
    return definition if isinstance(definition, dict) else None


def write_definitions(store: Store, new: Mapping[str, Mapping[str, Any]]) -> None:
    """Add or replace the definitions of these metadata partitions.

    Raises: CorruptFileError if the definitions do not parse.
    """
    content = _read(store)
    definitions = _definitions(content, store)
    changed = {**definitions, **new}
    if changed != definitions:
        _write(store, {**content, _DEFINITIONS: changed})


def drop_definitions(store: Store, names: Collection[str]) -> None:
    """Remove the definitions of these indexes; names without a definition are skipped."""
    content = _read(store)
    definitions = _definitions(content, store)
    kept = {name: definition for name, definition in definitions.items() if name not in names}
    if kept != definitions:
        _write(store, {**content, _DEFINITIONS: kept})


def _read(store: Store) -> dict[str, Any]:
    try:
        content = store.read(INDEX_DEFINITIONS)
    except FileNotFoundError:
        return {_DEFINITIONS: {}}
    return parse_json_object(content, path=store.uri(INDEX_DEFINITIONS), expected="a JSON object of index definitions")


def _definitions(content: dict[str, Any], store: Store) -> dict[str, Any]:
    definitions = content.get(_DEFINITIONS)
    if not isinstance(definitions, dict):
        raise CorruptFileError(
            f"index definitions do not parse: no object {_DEFINITIONS!r}", path=store.uri(INDEX_DEFINITIONS)
        )
    return definitions


def _write(store: Store, content: dict[str, Any]) -> None:
    store.replace(INDEX_DEFINITIONS, json.dumps(content, indent=2, ensure_ascii=False).encode())
