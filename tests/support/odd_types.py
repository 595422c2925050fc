"""Columns of Arrow types that have a plain twin, and the same values in the plain type."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

ROWS = 4
Pair = tuple[pa.Array, pa.Array]
"""The same values in a plain type and in another type."""


class Text(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A type that somebody's program defines."""

    def __init__(self) -> None:
        super().__init__(pa.string_view(), "tests.text")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Text:
        return cls()


def coded(array: pa.Array) -> pa.Array:
    """A dictionary array whose dictionary is `array` from back to front."""
    back = np.arange(len(array), dtype=np.int32)[::-1]
    values = array if array.type == pa.string_view() else array.take(pa.array(back))
    if array.type == pa.string_view():
        values = array.cast(pa.string()).take(pa.array(back)).cast(pa.string_view())
    return pa.DictionaryArray.from_arrays(pa.array(back), values)


def runs(array: pa.Array) -> pa.Array:
    """Run-end encoded: each value is a run of its own."""
    return pa.RunEndEncodedArray.from_arrays(pa.array(np.arange(1, len(array) + 1, dtype=np.int32)), array)


LEAVES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "view": lambda texts: texts.cast(pa.string_view()),
    "large": lambda texts: texts.cast(pa.large_string()),
    "coded": coded,
    "coded views": lambda texts: coded(texts.cast(pa.string_view())),
    "runs": runs,
    "runs of views": lambda texts: runs(texts.cast(pa.string_view())),
    "runs of codes": lambda texts: runs(coded(texts)),
    "own type": lambda texts: pa.ExtensionArray.from_storage(Text(), texts.cast(pa.string_view())),
}


def text_of_bytes(*values: bytes) -> pa.Array:
    """An array of text with these bytes, which nobody checked."""
    return pa.array(values, pa.binary()).view(pa.string())


def pairs_of(count: int) -> pa.Array:
    return pa.array(np.arange(0, 2 * count + 1, 2, dtype=np.int32))


def struct(child: pa.Array) -> pa.Array:
    mask = pa.array(np.arange(len(child) // 2) == 2)
    return pa.StructArray.from_arrays([child.slice(0, len(child) // 2)], names=["f"], mask=mask)


def list_view(child: pa.Array) -> pa.Array:
    count = len(child) // 2
    starts = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)[::-1])
    return pa.ListViewArray.from_arrays(starts, pa.array(np.full(count, 2, np.int32)), child)


def lists_of(child: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pairs_of(len(child) // 2), child)


def back_to_front(child: pa.Array) -> pa.Array:
    """The plain twin of `list_view`."""
    return lists_of(child).take(pa.array(np.arange(len(child) // 2)[::-1]))


def mapped(child: pa.Array) -> pa.Array:
    keys = pa.array([f"k{number}" for number in range(len(child))])
    return pa.MapArray.from_arrays(pairs_of(len(child) // 2), keys, child)


def view_mapped(child: pa.Array) -> pa.Array:
    keys = pa.array([f"k{number}" for number in range(len(child))], pa.string_view())
    return pa.MapArray.from_arrays(pairs_of(len(child) // 2), keys, child)


WRAPPERS: dict[str, tuple[Callable[[pa.Array], pa.Array], Callable[[pa.Array], pa.Array]]] = {
    "struct": (struct, struct),
    "list": (lists_of, lists_of),
    "large list": (lists_of, lambda child: pa.LargeListArray.from_arrays(pairs_of(len(child) // 2), child)),
    "fixed list": (lists_of, lambda child: pa.FixedSizeListArray.from_arrays(child, 2)),
    "list view": (back_to_front, list_view),
    "map": (mapped, view_mapped),
    "runs of structs": (struct, lambda child: runs(struct(child))),
}


def odd_pair(leaf: str, *wrappers: str) -> Pair:
    """Rows of a column and its plain twin; the first row is cut off, so that arrays begin in the middle of buffers."""
    count = (ROWS + 1) << len(wrappers)
    texts = pa.array([None if number == 3 else f"ä{number}" for number in range(count)])
    plain, odd = texts, LEAVES[leaf](texts)
    for wrapper in wrappers:
        make_plain, make_odd = WRAPPERS[wrapper]
        plain, odd = make_plain(plain), make_odd(odd)
    return plain.slice(1), odd.slice(1)


def pairs_of_all_depths() -> Iterable[tuple[str, Pair]]:
    """Columns of every type, bare, in every wrapper, and in every wrapper of a wrapper, with their names."""
    cases: list[tuple[str, ...]] = [(leaf,) for leaf in LEAVES]
    cases += [(leaf, wrapper) for leaf in LEAVES for wrapper in WRAPPERS]
    cases += [(leaf, inner, outer) for leaf in LEAVES for inner in WRAPPERS for outer in WRAPPERS]
    return (("_".join(case).replace(" ", "_"), odd_pair(*case)) for case in cases)


def tables(step: int) -> tuple[pa.Table, pa.Table]:
    """Return a table of plain types and the same rows in odd types; of every `step` types one."""
    found = dict(list(pairs_of_all_depths())[::step])
    keys = pa.array([f"key-{number}" for number in range(ROWS)])
    data = pa.array([b"\xff", None, b"", b"a"])
    names = ["id", *found, "data"]
    plain = [keys, *(pair[0] for pair in found.values()), data]
    odd = [LEAVES["coded views"](keys), *(pair[1] for pair in found.values()), data.cast(pa.binary_view())]
    return pa.table(plain, names=names), pa.table(odd, names=names)
