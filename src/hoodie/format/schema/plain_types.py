"""Bring Arrow data to plain types, at any depth, and find text that is not valid UTF-8.

A plain type is the one type among those for the same values: strings, binaries and lists, but not their large, view and
fixed-size forms; the values of dictionaries and run-end encoded arrays; the storage of extension types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError, UnsupportedError

_PLAIN: Final = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_AS_THEY_ARE: Final = frozenset(
    kind.id
    for kind in (
        *(pa.null(), pa.bool_(), pa.string(), pa.binary(), pa.binary(1), pa.decimal128(1), pa.date32(), pa.date64()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us")),
    )
)
"""The ids of types that are plain whatever their parameters are."""
_TEXT_BYTES_MAX: Final = (1 << 31) - 1
"""Bytes of an array of plain texts, whose offsets have 32 bits."""
_LISTS: Final = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types; types that a Hudi table cannot store stay as they are.

    Raises: UnsupportedError: columns nest too deep.
    """
    try:
        return pa.schema([_plain_field(child) for child in schema], metadata=schema.metadata)
    except RecursionError as error:
        raise UnsupportedError("the data's schema: columns of fewer nested levels expected") from error


def _is_list(kind: pa.DataType) -> bool:
    """Return whether values of the type are lists: plain, large, fixed-size or view lists."""
    return any(is_kind(kind) for is_kind in _LISTS)


def _plain_field(child: pa.Field) -> pa.Field:
    kind = child.type
    wanted = plain_type(kind)
    return child if wanted is kind else child.with_type(wanted)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain type; the same object if the type is plain."""
    if kind.id in _AS_THEY_ARE:
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if not pa.types.is_nested(kind):
        return _PLAIN.get(kind, kind)
    wanted = kind
    if pa.types.is_struct(kind):
        wanted = pa.struct([_plain_field(child) for child in kind.fields])
    elif pa.types.is_map(kind):
        wanted = pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), keys_sorted=kind.keys_sorted)
    elif _is_list(kind):
        wanted = pa.list_(_plain_field(kind.value_field))
    return kind if wanted.equals(kind) else wanted


def plain_array(array: pa.Array) -> pa.Array:
    """Return the array in its plain type; arrays of plain types are not copied.

    Raises: pa.ArrowInvalid: the values of large or view types exceed 2 GiB.
    """
    kind = array.type
    wanted = plain_type(kind)
    return array if wanted is kind else _plain(array, wanted)


def _plain(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain_array(array.storage)
    if pa.types.is_dictionary(kind):
        return _repeated(plain_array(array.dictionary), array.indices)
    if pa.types.is_run_end_encoded(kind):
        places = np.arange(array.offset, array.offset + len(array))
        return _repeated(plain_array(array.values), pa.array(np.searchsorted(array.run_ends, places, side="right")))
    if pa.types.is_struct(kind):
        children = [plain_array(array.field(place)) for place in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=wanted.fields, mask=mask)
    if pa.types.is_map(kind):
        offsets, (keys, values) = own_items(array, array.keys, array.items)
        fields = [wanted.key_field, wanted.item_field]
        return with_items(
            array, wanted, offsets, pa.StructArray.from_arrays([plain_array(keys), plain_array(values)], fields=fields)
        )
    if pa.types.is_list(kind):
        offsets, (items,) = own_items(array, array.values)
        return with_items(array, wanted, offsets, plain_array(items))
    if _is_list(kind):
        return with_items(array, wanted, _offsets(array), plain_array(_flat(array)))
    return pc.cast(array, wanted)


def _repeated(values: pa.Array, places: pa.Array) -> pa.Array:
    """Return the values at these places. Raises: pa.ArrowInvalid if their texts exceed 2 GiB.

    Releases of Arrow before 26 do not raise it: the offsets of the result are then wrong.
    """
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        lengths = pc.fill_null(pc.binary_length(values), 0).cast(pa.int64())
        longest = pc.max(lengths).as_py() or 0
        if longest * len(places) > _TEXT_BYTES_MAX and (pc.sum(lengths.take(places)).as_py() or 0) > _TEXT_BYTES_MAX:
            raise pa.ArrowInvalid(f"expected at most {_TEXT_BYTES_MAX} bytes of text in one array")
    return values.take(places)


def own_items(array: pa.Array, *items: pa.Array) -> tuple[pa.Array, list[pa.Array]]:
    """Return offsets from zero and the items of this slice only: items outside the slice must not be checked."""
    if len(array) == 0:
        return pa.array([0], pa.int32()), [child.slice(0, 0) for child in items]
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    offsets = pc.subtract(array.offsets, pa.scalar(start, pa.int32()))
    return offsets, [child.slice(start, end - start) for child in items]


def _offsets(array: pa.Array) -> pa.Array:
    """Return 32-bit offsets of large, fixed-size and view lists, whose null lists have no items."""
    sizes = pc.fill_null(pc.cast(pc.list_value_length(array), pa.int32()), 0)
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum_checked(sizes)])


def _flat(array: pa.Array) -> pa.Array:
    """Return the items of lists that are not null, in the order of the lists."""
    kind = array.type
    if not (pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)):
        return array.flatten()
    # Arrow's own `flatten` cannot concatenate items of every type.
    starts = np.asarray(array.offsets).astype(np.int64)
    sizes = np.asarray(pc.fill_null(pc.list_value_length(array), 0)).astype(np.int64)
    first = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return plain_array(array.values).take(pa.array(first + np.arange(len(first))))


def with_items(array: pa.Array, wanted: pa.DataType, offsets: pa.Array, items: pa.Array) -> pa.Array:
    """Build a list or map array with new items; it is null where `array` is null."""
    validity = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [validity, offsets.buffers()[1]]
    return pa.Array.from_buffers(wanted, len(array), buffers, array.null_count, children=[items])


def valid_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches in plain types, each as `plain_batches` does. Raises: as `plain_batches`."""
    row = 0
    for batch in batches:
        yield from plain_batches(batch, plain_schema(batch.schema), row)
        row += batch.num_rows


def plain_batches(batch: pa.RecordBatch, schema: pa.Schema, first_row: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in plain types; `schema` is the plain schema. Columns of plain types are not copied.

    Several batches, if the text of a column exceeds 2 GiB. `first_row`: number of the first row, for errors.

    Raises: SchemaMismatchError: a text is not valid UTF-8, or Arrow cannot read a column; names the column.
    """
    columns = []
    for child, column in zip(schema, batch.columns, strict=True):
        try:
            columns.append(plain_array(column))
        except pa.ArrowException as error:
            half = batch.num_rows // 2
            if not half or not isinstance(error, (pa.ArrowInvalid, pa.ArrowCapacityError)):
                raise SchemaMismatchError(
                    f"column {child.name!r}, row {first_row}: Arrow cannot make {child.type} of its {column.type} "
                    f"({error}); cast the column"
                ) from error
            yield from plain_batches(batch.slice(0, half), schema, first_row)
            yield from plain_batches(batch.slice(half), schema, first_row + half)
            return
        refuse_wrong_text(columns[-1], child.name, first_row)
    if not columns:
        yield batch
        return
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def refuse_wrong_text(array: pa.Array, name: str, first_row: int = 0) -> None:
    """Refuse text that is not valid UTF-8, in an array of a plain type. `first_row`: number of the first row.

    Texts of ASCII characters cost a pass over their bytes.

    Raises: SchemaMismatchError: names column and row.
    """
    if not _has_wrong_text(array):
        return
    place = _first_wrong(array)
    if place is not None:
        raise SchemaMismatchError(
            f"column {name!r}, row {first_row + place}: text with bytes that are not valid UTF-8; decode the bytes "
            "with the encoding that they have, or write them as binary"
        )


def _has_wrong_text(array: pa.Array) -> bool:
    """Return whether a text is not valid UTF-8; texts below null lists and structs count too."""
    kind = array.type
    if pa.types.is_string(kind):
        return not _is_ascii(array) and not _is_valid(array)
    if pa.types.is_struct(kind):
        return any(_has_wrong_text(array.field(place)) for place in range(kind.num_fields))
    if pa.types.is_map(kind):
        return any(map(_has_wrong_text, own_items(array, array.keys, array.items)[1]))
    return bool(pa.types.is_list(kind)) and any(map(_has_wrong_text, own_items(array, array.values)[1]))


def _is_ascii(array: pa.StringArray) -> bool:
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return True
    bounds = np.frombuffer(offsets, np.int32)
    found = np.frombuffer(data, np.int8)[bounds[array.offset] : bounds[array.offset + len(array)]]
    return not len(found) or bool(found.min() >= 0)


def _is_valid(array: pa.StringArray) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _first_wrong(array: pa.Array) -> int | None:
    """Return the place of the first value with text that is not valid UTF-8; values below null do not count."""
    kind = array.type
    if pa.types.is_string(kind):
        return None if _is_valid(array) else _bisected(array)
    if pa.types.is_struct(kind):
        places = [place for place in map(_first_wrong, array.flatten()) if place is not None]
        return min(places, default=None)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])
        array = pa.Array.from_buffers(
            pa.list_(entries.type), len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
        )
    elif not pa.types.is_list(kind):
        return None
    place = _first_wrong(array.flatten())
    ends = np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(array), 0)))
    return None if place is None else int(np.searchsorted(ends, place, side="right"))


def _bisected(array: pa.StringArray) -> int:
    start, length = 0, len(array)
    while length > 1:
        half = length // 2
        if _is_valid(array.slice(start, half)):
            start, length = start + half, length - half
        else:
            length = half
    return start
