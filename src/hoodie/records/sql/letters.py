"""Upper and lower case of text as in Spark: also of letters that become several, such as `ß`, and of a final sigma.

Arrow maps each character to one character. So values with such letters go through Python, whose rules are those of
Java. The functions are registered with Arrow; every module that evaluates expressions imports this one, because an
expression that was sent to another process names them only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_BECOME_SEVERAL: Final = (
    "ßŉǰΐΰևẖ-ẚ"
    r"\x{1f50}\x{1f52}\x{1f54}\x{1f56}\x{1f80}-\x{1faf}\x{1fb2}-\x{1fb4}\x{1fb6}\x{1fb7}\x{1fbc}"
    r"\x{1fc2}-\x{1fc4}\x{1fc6}\x{1fc7}\x{1fcc}\x{1fd2}\x{1fd3}\x{1fd6}\x{1fd7}\x{1fe2}-\x{1fe4}\x{1fe6}\x{1fe7}"
    r"\x{1ff2}-\x{1ff4}\x{1ff6}\x{1ff7}\x{1ffc}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}"
)
_TYPES: Final = (pa.string(), pa.large_string())


def _register(name: str, fast: Callable[[Any], Any], pattern: str, change: Callable[[str], str]) -> None:
    """Register a function that changes values by `fast` of Arrow, and those with a letter of the pattern by Python."""

    def changed(_context: Any, values: Any) -> Any:
        is_scalar = isinstance(values, pa.Scalar)
        texts = pa.array([values.as_py()], values.type) if is_scalar else values
        found = fast(texts)
        special = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
        if pc.any(special).as_py():
            encoded = texts.filter(special).dictionary_encode()
            words = pa.array([change(word) for word in encoded.dictionary.to_pylist()], texts.type)
            found = pc.replace_with_mask(found, special, words.take(encoded.indices))
        return found[0] if is_scalar else found

    doc = {"summary": f"{name} of Spark", "description": "Letters may become several."}
    for data_type in _TYPES:
        pc.register_scalar_function(changed, f"hoodie_{name}_{data_type}", doc, {"text": data_type}, data_type)


_register("upper", pc.utf8_upper, f"[{_BECOME_SEVERAL}]", str.upper)
_register("lower", pc.utf8_lower, "[İΣ]", str.lower)


def changed_case(name: str, text: pc.Expression, data_type: pa.DataType) -> pc.Expression:
    """Return the text in `upper` or `lower` case; `data_type` is its type."""
    kind = data_type if data_type in _TYPES else pa.string()
    return pc.Expression._call(f"hoodie_{name}_{kind}", [text if kind == data_type else text.cast(kind)])
