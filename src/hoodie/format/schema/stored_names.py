"""The names that the columns of a table have in one of its older files.

A column keeps its id when it is renamed. So a file from before the rename has the column under its old name, and may
have another column, dropped since, under the column's new name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from hoodie.format.schema.arrow_types import LIST_ITEM
from hoodie.format.schema.column_ids import ColumnId

StoredNames = Mapping[str, str | None]
"""By the path of a current field (`column`, `column.field`, `column.element.field`): its own name in the file, or None
if the file does not have it. A field that is not listed has its current name, if the file has it."""
SAME_NAMES: Final[StoredNames] = {}


def stored_names(
    stored: Sequence[ColumnId], current: Sequence[ColumnId], fields: Sequence[pa.Field], parent: str = ""
) -> dict[str, str | None]:
    """Return the names of the current fields in a file that differ from the current names.

    `stored` are the ids in the file, `current` the ids of the table. A current field without an id was added by a
    writer that knows no ids: it is not the stored field of the same name.
    """
    by_id = {column.id: column for column in stored}
    ids = {column.name: column for column in current}
    taken = {column.name for column in stored}
    found: dict[str, str | None] = {}
    for child in fields:
        column = ids.get(child.name)
        old = None if column is None else by_id.get(column.id)
        path = f"{parent}{child.name}"
        if column is None or old is None:
            if child.name in taken:
                found[path] = None
            continue
        if old.name != child.name:
            found[path] = old.name
        found |= stored_names(old.below, column.below, fields_below(child.type), f"{path}.")
    return found


def fields_below(data_type: pa.DataType) -> list[pa.Field]:
    """Return the fields of a struct, the items of a list or the values of a map, as `ColumnId.below` has them."""
    if pa.types.is_struct(data_type):
        return list(data_type.fields)
    if pa.types.is_list(data_type):
        return [data_type.value_field.with_name(LIST_ITEM)]
    if pa.types.is_map(data_type):
        return [data_type.item_field.with_name("value")]
    return []
