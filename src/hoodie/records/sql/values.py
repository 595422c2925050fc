"""Typed expressions, literals, and Spark's rules for the common type of two operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError, UnsupportedError

Family = Literal["null", "boolean", "integer", "decimal", "float", "string", "binary", "date", "timestamp", "nested"]

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
MAX_PRECISION = 38
TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
# Not made from Python values: their conversion imports pandas, which `import hoodie` must not import.
_ONE_ROW = pa.Table.from_arrays([pa.nulls(1, pa.int8())], ["row"])


@dataclass(frozen=True, slots=True)
class Value:
    """An Arrow expression and its type; a literal also has its Python value, or for a date or time its Arrow scalar.

    Python's dates end with the year 9999.
    """

    expression: pc.Expression
    type: pa.DataType
    is_literal: bool = False
    literal: object = None

    @property
    def family(self) -> Family:
        """The kind of type that the rules for coercion distinguish."""
        return family_of(self.type)

    @property
    def is_null_literal(self) -> bool:
        """Whether this is a NULL written in the SQL text."""
        return self.is_literal and self.literal is None

    @property
    def is_number_literal(self) -> bool:
        """Whether this is a number written in the SQL text; NaN is none."""
        return self.is_literal and self.family in ("integer", "decimal", "float") and self.literal == self.literal


Translate = Callable[[exp.Expression], Value]
"""Translates the argument of a function."""


def family_of(data_type: pa.DataType) -> Family:
    """Return the kind of an Arrow type, as SQL distinguishes kinds."""
    tests: list[tuple[Family, bool]] = [
        ("null", pa.types.is_null(data_type)),
        ("boolean", pa.types.is_boolean(data_type)),
        ("integer", pa.types.is_integer(data_type)),
        ("decimal", pa.types.is_decimal(data_type)),
        ("float", pa.types.is_floating(data_type)),
        ("string", pa.types.is_string(data_type) or pa.types.is_large_string(data_type)),
        ("binary", pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type)),
        ("date", pa.types.is_date32(data_type)),
        ("timestamp", pa.types.is_timestamp(data_type)),
    ]
    return next((family for family, matches in tests if matches), "nested")


def literal(value: object, data_type: pa.DataType) -> Value:
    """Make a literal of a type that represents the value exactly; a date or time may be a number of its units."""
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, data_type)
    if value is not None and pa.types.is_temporal(data_type):
        value = scalar
    return Value(pc.scalar(scalar), data_type, is_literal=True, literal=value)


def null_of(data_type: pa.DataType) -> pc.Expression:
    """Return NULL of a type."""
    return pc.scalar(pa.scalar(None, data_type))


def integer_literal(value: int) -> Value:
    """Make an integer literal of the type that Spark gives it: int, bigint, else decimal."""
    if -(2**31) <= value < 2**31:
        return literal(value, pa.int32())
    if -(2**63) <= value < 2**63:
        return literal(value, pa.int64())
    return decimal_literal(Decimal(value))


def decimal_literal(value: Decimal) -> Value:
    """Make a decimal literal with the precision and scale of its digits. Raises: UnsupportedError beyond 38 digits."""
    digits, exponent = len(value.as_tuple().digits), int(value.as_tuple().exponent)
    scale = max(0, -exponent)
    precision = max(digits + max(0, exponent), scale)
    if precision > MAX_PRECISION:
        raise UnsupportedError(f"number {str(value)[:50]} has {precision} digits; a decimal holds {MAX_PRECISION}")
    return literal(value, pa.decimal128(precision, scale))


def bounds_of(data_type: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the greatest value of an integer type."""
    bits = data_type.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(data_type) else (0, 2**bits - 1)


def fold(value: Value) -> Value:
    """Evaluate an expression that refers to no column, and return the result as a literal.

    Raises: SchemaMismatchError if the value does not fit its type.
    """
    try:
        folded = evaluate(value.expression, _ONE_ROW)[0]
        is_kept = folded.is_valid and pa.types.is_temporal(value.type)
        return literal(folded if is_kept else folded.as_py(), value.type)
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"the literal does not fit {value.type}: {error}") from error


def evaluate(expression: pc.Expression, table: pa.Table) -> pa.ChunkedArray:
    """Compute an expression for every row of a table, in order; memory: the table and the result.

    Raises: as `evaluate_all`.
    """
    return evaluate_all({"value": expression}, table).column(0)


def evaluate_all(expressions: Mapping[str, pc.Expression], table: pa.Table) -> pa.Table:
    """Compute expressions in one pass over a table; the result has a column for each. Memory: the table and the result.

    Raises: SchemaMismatchError for a value that does not fit its type, such as a sum that overflows; UnsupportedError
    for types that Arrow does not compute with.
    """
    # Not at the top: pyarrow.acero imports pandas if it is installed, which would add a second to `import hoodie`.
    from pyarrow import acero

    plan = acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
            acero.Declaration("project", acero.ProjectNodeOptions([*expressions.values()], [*expressions])),
        ]
    )
    try:
        return plan.to_table(use_threads=False)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(f"a value of an expression does not fit its type: {error}") from error
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedError(f"an expression is not supported without Spark: {error}") from error


def decimal_of(value: Value) -> pa.DataType:
    """Return the decimal type of an integer or decimal operand; for an integer literal from its digits, as in Spark."""
    if value.family == "decimal":
        return value.type
    if value.is_literal and isinstance(value.literal, int):
        return pa.decimal128(len(str(abs(value.literal))), 0)
    return pa.decimal128({8: 3, 16: 5, 32: 10, 64: 20}[value.type.bit_width], 0)


def shared_type(left: Value, right: Value) -> pa.DataType | None:
    """Return the type to which Spark casts both operands of `=`, CASE or COALESCE; None if there is none.

    Pairs of text and another type are not considered: `compare.py` converts the text to the other operand's type.
    """
    families = {left.family, right.family} - {"null"}
    if left.family == "null" or left.type == right.type:
        return right.type
    if right.family == "null":
        return left.type
    if families == {"integer"}:
        return max(_signed(left.type), _signed(right.type), key=lambda one: one.bit_width)
    if families <= {"integer", "decimal"}:
        a, b = decimal_of(left), decimal_of(right)
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale
        # 256 bits if 128 bits would lose digits.
        return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else pa.decimal256(precision, scale)
    if families <= {"integer", "decimal", "float"}:
        return pa.float64()
    if families <= {"date", "timestamp"}:
        stamps = [one.type for one in (left, right) if one.family == "timestamp"]
        unit = max((one.unit for one in stamps), key=TICKS_PER_SECOND.__getitem__)
        return pa.timestamp(unit, "UTC" if any(one.tz is not None for one in stamps) else None)
    if families in ({"string"}, {"binary"}):
        return pa.large_string() if families == {"string"} else pa.large_binary()
    return None


def _signed(data_type: pa.DataType) -> pa.DataType:
    if not pa.types.is_unsigned_integer(data_type):
        return data_type
    return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.int64()}[data_type.bit_width]
