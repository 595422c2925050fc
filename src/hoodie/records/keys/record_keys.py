"""Record keys: the text that identifies the record of a row.

On-disk format: docs/format/table.md §3.3; checked by tests/golden/keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import RecordKeyError, UnsupportedError
from hoodie.format.schema.java_text import java_text

NULL_KEY_PART: Final = "__null__"
"""Represents null in a key of several fields. On disk: do not change."""

EMPTY_KEY_PART: Final = "__empty__"
"""Represents empty text in a key of several fields. On disk: do not change."""


def record_keys(
    batch: pa.RecordBatch, fields: Sequence[str], *, with_names: bool, stored: bool = False
) -> pa.StringArray:
    """Return the record key of every row: the bare value of one field, or `f1:v1,f2:v2` with names.

    Nested fields are written with dots. With names, some parts may be null or empty, but not all parts of a key. Parts
    that make the key of other parts too are refused, unless the rows are `stored` in a table.

    Raises:
        RecordKeyError: a field is missing or its type has no text, or keys are null, empty or ambiguous; the error
            contains up to three row numbers.
    """
    parts = [_key_part(batch, name) for name in fields]
    if not with_names:
        return _bare_keys(parts[0], fields[0])
    _refuse_rows(_all_missing(parts), fields, "all parts are null or empty", parts)
    if len(fields) > 1 and not stored:
        _refuse_ambiguous(batch, fields, parts)
    pieces: list[pa.Array | str] = []
    for position, (name, text) in enumerate(zip(fields, parts, strict=True)):
        pieces += [f"{',' if position else ''}{name}:", _marked(text)]
    return pc.binary_join_element_wise(*pieces, "")


def column_of(batch: pa.RecordBatch, name: str) -> tuple[pa.Array, pa.Array | None] | None:
    """Return a column and a mask of the rows where a struct around it is null; None if there is no such column.

    Names of nested columns have dots. The mask is None where no struct is null. The values inside a null struct are
    null.
    """
    first, *rest = name.split(".")
    position = batch.schema.get_field_index(first)
    if position < 0:
        return None
    array, absent = batch.column(position), None
    for step in rest:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(step) < 0:
            return None
        if array.null_count:
            absent = array.is_null()
        array = pc.struct_field(array, step)
    return array, absent


def _key_part(batch: pa.RecordBatch, name: str) -> pa.StringArray:
    found = column_of(batch, name)
    if found is None:
        raise RecordKeyError(f"record key field {name!r} is not in the data, which has {', '.join(batch.schema.names)}")
    array, absent = found
    if absent is not None:
        _refuse_rows(absent, [name], "the struct around it is null", [])
    try:
        return java_text(array)
    except UnsupportedError as error:
        raise RecordKeyError(f"record key field {name!r}: {error}") from error


def _refuse_ambiguous(batch: pa.RecordBatch, fields: Sequence[str], parts: Sequence[pa.StringArray]) -> None:
    """Refuse texts that make the key of other values: nothing in a key of several fields is escaped.

    `("1,b:2", "3")` and `("1", "2,b:3")` both make `a:1,b:2,b:3`. A key can be cut in another way only if a text has
    the cut before its own field or before the next one in it, and only if two fields have texts to cut.

    Raises: RecordKeyError.
    """
    texts = [place for place, name in enumerate(fields) if _holds_text(batch, name)]
    for place in texts:
        name, text = fields[place], parts[place]
        marks = pa.array([NULL_KEY_PART, EMPTY_KEY_PART])
        same = "the text is what the key contains for null and empty values, so that two records would have one key"
        _refuse_rows(pc.is_in(text, value_set=marks), [name], same, [text])
        for neighbour in fields[max(place, 1) : place + 2] if len(texts) > 1 else ():
            cut = f",{neighbour}:"
            problem = (
                f"the text contains {cut!r}, which begins a part of the key, so that two records could have one key"
            )
            _refuse_rows(pc.fill_null(pc.match_substring(text, cut), False), [name], problem, [text])


def _holds_text(batch: pa.RecordBatch, name: str) -> bool:
    found = column_of(batch, name)
    assert found is not None
    kind = found[0].type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _bare_keys(text: pa.StringArray, name: str) -> pa.StringArray:
    _refuse_rows(_missing(text), [name], "null or empty", [text])
    return text


def _missing(text: pa.StringArray) -> pa.BooleanArray:
    return pc.fill_null(pc.equal(pc.binary_length(text), 0), True)


def _all_missing(parts: Sequence[pa.StringArray]) -> pa.BooleanArray:
    missing = _missing(parts[0])
    for part in parts[1:]:
        missing = pc.and_(missing, _missing(part))
    return missing


def _marked(text: pa.StringArray) -> pa.StringArray:
    text = pc.if_else(pc.equal(pc.binary_length(text), 0), EMPTY_KEY_PART, text)
    return pc.fill_null(text, NULL_KEY_PART)


def _refuse_rows(bad: pa.BooleanArray, fields: Sequence[str], problem: str, parts: Sequence[pa.StringArray]) -> None:
    count = pc.sum(bad).as_py() or 0
    if not count:
        return
    rows = pc.indices_nonzero(bad).slice(0, 3).to_pylist()
    shown = [f"row {row}" + "".join(f" {part[row].as_py()!r}" for part in parts) for row in rows]
    names = ", ".join(repr(name) for name in fields)
    raise RecordKeyError(
        f"record key {names}: {problem} in {count} of {len(bad)} rows ({'; '.join(shown)}); "
        f"change them or pick another key"
    )
