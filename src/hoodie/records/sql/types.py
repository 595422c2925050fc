"""Convert the type names of Spark SQL in CAST to Arrow types."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from hoodie.records.sql.parse import unsupported
from hoodie.records.sql.values import MAX_PRECISION, TIMESTAMP, TIMESTAMP_NTZ

_TYPES: dict[object, pa.DataType] = {
    exp.DataType.Type.BOOLEAN: pa.bool_(),
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.BINARY: pa.binary(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMP: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}
_DEFAULT_PRECISION = 10
_DIGITS_MAX = 10


def arrow_type(node: exp.DataType) -> pa.DataType:
    """Return the Arrow type of a type name.

    Raises: UnsupportedError for nested types, intervals and sized text.
    """
    texts = [one.this.name for one in node.expressions if isinstance(one, exp.DataTypeParam)]
    if not all(text.isdecimal() and len(text) < _DIGITS_MAX for text in texts):
        raise unsupported(node, "the size of a type is a whole number")
    sizes = [int(text) for text in texts]
    if node.this == exp.DataType.Type.DECIMAL:
        precision, scale = (*sizes, *(_DEFAULT_PRECISION, 0)[len(sizes) :])[:2]
        if len(sizes) > 2 or not 0 < precision <= MAX_PRECISION or scale > precision:
            raise unsupported(node, f"a decimal has 1 to {MAX_PRECISION} digits, and not more behind the point")
        return pa.decimal128(precision, scale)
    found = _TYPES.get(node.this)
    if found is None or sizes:
        raise unsupported(node, "the type is not known")
    return found
