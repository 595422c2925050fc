"""Index definitions: what `.hoodie/.index_defs/index.json` says of the metadata table's indexes.

docs/format/metadata.md §3.11. A reader believes an index when `hoodie.table.metadata.partitions` names it; the
definition tells of which kind it is.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.metadata.places import INDEX_DEFINITIONS
from hoodie.metadata.record_index.partition import PARTITION
from hoodie.storage import Store

_DEFINITIONS = "indexDefinitions"


def is_partitioned_record_index(store: Store) -> bool:
    """Whether the record index has buckets for each data partition of its own.

    Raises: CorruptFileError if the definitions do not parse.
    """
    definition = _definitions(_read(store), store).get(PARTITION) or {}
    options = definition.get("indexOptions") if isinstance(definition, dict) else None
    return isinstance(options, dict) and str(options.get("isPartitioned")).lower() == "true"


def define_record_index(store: Store, *, is_partitioned: bool = False) -> None:
    """Add or replace the definition of the record index."""
    content = _read(store)
    definitions = _definitions(content, store)
    wanted = {
        "indexName": PARTITION,
        "indexType": PARTITION,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {"isPartitioned": str(is_partitioned).lower()},
        "version": "V1",
    }
    if definitions.get(PARTITION) != wanted:
        _write(store, {**content, _DEFINITIONS: {**definitions, PARTITION: wanted}})


def drop_definitions(store: Store, names: Collection[str]) -> None:
    """Remove the definitions of these indexes; missing ones are fine."""
    content = _read(store)
    definitions = _definitions(content, store)
    kept = {name: definition for name, definition in definitions.items() if name not in names}
    if kept != definitions:
        _write(store, {**content, _DEFINITIONS: kept})


def _read(store: Store) -> dict[str, Any]:
    try:
        content = json.loads(store.read(INDEX_DEFINITIONS))
    except FileNotFoundError:
        return {_DEFINITIONS: {}}
    except ValueError as error:
        raise CorruptFileError(f"no index definitions: {error!r}", path=store.uri(INDEX_DEFINITIONS)) from error
    if not isinstance(content, dict):
        raise CorruptFileError("no index definitions: an object expected", path=store.uri(INDEX_DEFINITIONS))
    return content


def _definitions(content: dict[str, Any], store: Store) -> dict[str, Any]:
    definitions = content.get(_DEFINITIONS)
    if not isinstance(definitions, dict):
        raise CorruptFileError(f"no index definitions: no {_DEFINITIONS!r}", path=store.uri(INDEX_DEFINITIONS))
    return definitions


def _write(store: Store, content: dict[str, Any]) -> None:
    store.replace(INDEX_DEFINITIONS, json.dumps(content, indent=2, ensure_ascii=False).encode())
