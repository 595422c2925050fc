"""Convert values to the text that Java prints: for record keys, partition paths, and columns that became text.

On-disk format: docs/format/table.md §3.3; tests/golden/keys checks each value.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedError
from hoodie.format.schema.arrow_types import offsets_of

_HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)
_FIRST_DAY, _LAST_DAY = -12_687_428, 11_248_737
"""Days since 1970 of the years that Arrow writes as text, -32767 to 32767."""
_PARTS: Final = r"^(?P<sign>-?)(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]+))?(?:e(?P<exponent>[-+]?[0-9]+))?$"


def java_text(array: pa.Array) -> pa.StringArray:
    """Return each value as the text that keys contain; null stays null.

    Integers and booleans as usual; floats like `toString` of Java 19 and later (the shortest digits that identify the
    value; older Java versions write more digits for a few values); decimals like `BigDecimal.toString`: all digits of
    their scale, scientific below 1E-6; dates ISO; timestamps as the raw number since 1970 in their own unit; binary as
    lower-case hex. Vectorised; memory: a few times the memory of the result.

    Raises: UnsupportedError for lists, maps, structs, times and null types, which have no text.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        values = java_text(array.dictionary)
        return pc.take(values, array.indices)
    if pa.types.is_string(kind):
        return array
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind) or _is_long_text(kind):
        return pc.cast(array, pa.string())
    if pa.types.is_floating(kind):
        return _float_text(array)
    if pa.types.is_date(kind):
        return _date_text(pc.cast(array, pa.date32()))
    if pa.types.is_timestamp(kind):
        return pc.cast(pc.cast(array, pa.int64()), pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _hex_text(pc.cast(array, pa.binary()))
    raise UnsupportedError(f"a column of type {kind} has no text form for keys or partition paths: pick another column")


def shortest_text(array: pa.Array) -> pa.StringArray:
    """Return the digits that Java prints for floats, in Arrow's notation; of one-digit numbers Java prints two digits.

    The two digits differ from the one only for the smallest numbers.
    """
    text = pc.cast(array, pa.string())
    step = 4.9e-324 if array.type == pa.float64() else 1.4e-45
    tiny = pc.less(pc.abs(array), 100 * step)
    if not pc.any(tiny).as_py():
        return text
    distinct = pc.unique(array.filter(tiny))
    two_digits = pa.array([f"{value:.1e}" for value in distinct.to_pylist()])
    shortest = pc.cast(distinct, pa.string())
    better = pc.if_else(pc.match_substring_regex(shortest, r"^-?[0-9](\.0)?(e|$)"), two_digits, shortest)
    position = pc.index_in(array, distinct)
    return pc.coalesce(pc.take(better, position), text)


def _is_long_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _date_text(days: pa.Array) -> pa.StringArray:
    """Return ISO dates; Java writes a plus before years of more than four digits.

    Raises: UnsupportedError for years that Arrow does not write.
    """
    ends = pc.min_max(pc.cast(days, pa.int32())).as_py()
    if ends["min"] is not None and not _FIRST_DAY <= ends["min"] <= ends["max"] <= _LAST_DAY:
        raise UnsupportedError(
            "a date of a year before -32767 or after 32767 has no text for keys or partition paths: correct the value, "
            "or pick another column"
        )
    text = pc.cast(days, pa.string())
    return pc.replace_substring_regex(text, r"^([0-9]{5,})", r"+\1")


def _hex_text(array: pa.Array) -> pa.StringArray:
    offsets = offsets_of(array)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(array) else (0, 0)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[first:last]
    text = pa.py_buffer(_HEX[data].tobytes())
    new_offsets = pa.py_buffer(((offsets - first) * 2).astype(np.int32).tobytes())
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(pa.string(), len(array), [validity, new_offsets, text])


def _float_text(array: pa.Array) -> pa.StringArray:
    """Return floats in Java's notation: plain from 1e-3 up to 1e7 (exclusive), otherwise as `d.dddE±n`."""
    text = pc.cast(array, pa.string())
    numbers = np.abs(pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.float64))
    plain = (numbers == 0) | ((numbers >= 1e-3) & (numbers < 1e7))
    special = ~np.isfinite(numbers)
    scientific = pa.array(~plain & ~special)
    with_fraction = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, "0", "."))
    text = pc.if_else(pa.array(plain), with_fraction, text)
    infinite = pc.if_else(pc.greater(array, 0), "Infinity", "-Infinity")
    text = pc.if_else(pa.array(special), pc.if_else(pc.is_nan(array), "NaN", infinite), text)
    if not pc.any(scientific).as_py():
        return text
    return pc.replace_with_mask(text, scientific, _scientific_text(array.filter(scientific)))


def _scientific_text(array: pa.Array) -> pa.StringArray:
    """Return finite numbers other than zero as `d.dddE±n`; Arrow may print them in any of its notations."""
    parts = pc.extract_regex(shortest_text(array), _PARTS)
    sign, whole, fraction, exponent = (
        pc.struct_field(parts, name) for name in ("sign", "whole", "fraction", "exponent")
    )
    digits = pc.binary_join_element_wise(whole, fraction, "")
    significant = pc.ascii_ltrim(digits, "0")
    leading_zeros = pc.subtract(pc.binary_length(digits), pc.binary_length(significant))
    shift = pc.subtract(pc.subtract(pc.binary_length(whole), 1), leading_zeros)
    written = pc.cast(pc.if_else(pc.equal(exponent, ""), "0", pc.ascii_ltrim(exponent, "+")), pa.int32())
    power = pc.cast(pc.add(written, shift), pa.string())
    rest = pc.ascii_rtrim(pc.utf8_slice_codeunits(significant, 1), "0")
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    return pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(significant, 0, 1), ".", rest, "E", power, "")
