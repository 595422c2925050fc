"""The global simple index: `hoodie.index.simple` with keys that are unique in the whole table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie import config as options
from hoodie.index.kind import IndexKind
from hoodie.index.simple import SimpleIndex
from hoodie.view.table_view import TableView


def _make(_view: TableView, properties: Mapping[str, str]) -> SimpleIndex:
    return SimpleIndex(is_global=True, update_partition_path=GLOBAL_SIMPLE.moves_records(properties))


GLOBAL_SIMPLE: Final = IndexKind(
    name="global_simple",
    types=("GLOBAL_SIMPLE",),
    make=_make,
    is_global=True,
    moves_option=options.UPDATE_PARTITION_PATH,
)
