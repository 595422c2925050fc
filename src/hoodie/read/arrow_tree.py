"""The parts of an expression of pyarrow, as trees of calls, fields and values.

pyarrow has no access to them, and its text cuts long values and does not escape all characters. It pickles an
expression as an IPC file, whose schema has the parts as metadata and whose columns have the values.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

_POINTER_BYTES: Final = ctypes.sizeof(ctypes.c_void_p)
_COUNT_BYTES: Final = 4
# An own prototype: types that are set on the function of `ctypes.pythonapi` count for the whole process.
_POINTER_TYPE: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_pointer_of: Final = _POINTER_TYPE(("PyCapsule_GetPointer", ctypes.pythonapi))


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct: the names from the column on."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function, its arguments and its options; the options are None if it has none."""

    name: str
    arguments: list[Node] = field(default_factory=list)
    options: pa.StructScalar | None = None


Node: TypeAlias = Call | Field | pa.Scalar


def tree_of(expression: pc.Expression) -> Node | None:
    """Return the tree of an expression; None if it has a part that pyarrow does not pickle, such as a field's number.

    Without recursion: a chain of conditions is as deep as it is long.
    """
    try:
        _, (buffer, *_) = expression.__reduce__()
        stored = pa.ipc.open_file(buffer).get_batch(0)
        return _built(_pairs(stored.schema), stored)
    except (pa.ArrowException, LookupError, TypeError, ValueError):
        return None


def fields_of(tree: Node) -> Iterator[Field]:
    """Yield the fields of a tree, each as often as it is there."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            pending += node.arguments
        elif isinstance(node, Field):
            yield node


def _built(pairs: list[tuple[str, str]], stored: pa.RecordBatch) -> Node:
    """Build the tree. Raises: LookupError, TypeError or ValueError if the parts do not have the known form."""
    root: Call = Call("")
    open_calls = [root]
    options: pa.StructScalar | None = None
    parts = iter(pairs)
    for kind, text in parts:
        arguments = open_calls[-1].arguments
        match kind:
            case "call":
                open_calls.append(Call(text))
            case "end":
                done = open_calls.pop()
                open_calls[-1].arguments.append(Call(done.name, done.arguments, options))
                options = None
            case "options":
                options = stored.column(int(text))[0]
            case "literal":
                arguments.append(stored.column(int(text))[0])
            case "field_ref":
                arguments.append(Field((text,)))
            case "nested_field_ref":
                arguments.append(Field(tuple(next(parts)[1] for _ in range(int(text)))))
            case _:
                raise ValueError(kind)
    (tree,) = root.arguments
    return tree


def _pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return the metadata of a schema with all its pairs, in order: pyarrow returns one of several with the same key.

    The pairs are read from the C structure `ArrowSchema` of the Arrow format, whose third member points to them.
    """
    capsule = schema.__arrow_c_schema__()
    at = ctypes.c_void_p.from_address(_pointer_of(capsule, b"arrow_schema") + 2 * _POINTER_BYTES).value
    if at is None:
        return []

    def number() -> int:
        nonlocal at
        found = int.from_bytes(ctypes.string_at(at, _COUNT_BYTES), sys.byteorder, signed=True)
        at += _COUNT_BYTES
        return found

    def text() -> str:
        nonlocal at
        size = number()
        found = ctypes.string_at(at, size).decode()
        at += size
        return found

    return [(text(), text()) for _ in range(number())]
