"""What becomes of the options of JVM Hudi 1.2 that `hoodie` does not have under the same name.

`hudi_options.tsv` has one row for each key of JVM Hudi's configuration, old and second names too: the key, its default
in the JVM, its fate, and a text. `docs/options.md` shows the table; `scripts/hudi_options.py` compares it with a bundle
of JVM Hudi. It is read when a call has a key that `hoodie` does not define.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from types import MappingProxyType
from typing import Final


class Fate(StrEnum):
    """What `hoodie` does with an option of JVM Hudi; the comments describe the text of the row."""

    USED = "used"  # no text: it is an option of `hoodie.config`, or a property of a table
    NAME = "name"  # the key that it is another name of
    CLASS = "class"  # the key whose value the Java class, or the value of JVM Hudi, stands for
    IDLE = "idle"  # why it has no effect
    CALL = "call"  # the argument or method with the same meaning
    REFUSED = "refused"  # what to do instead; the JVM's default value is accepted, as it changes nothing


@dataclass(frozen=True, slots=True)
class HudiOption:
    """One option of JVM Hudi. `default` is the JVM's, `""` if it has none."""

    key: str
    default: str
    fate: Fate
    text: str

    def asks_for_nothing(self, value: str) -> bool:
        """Return whether a value is the JVM's default, or a Java class that does what `hoodie` does."""
        is_default = bool(self.default) and value.strip().lower() == self.default.lower()
        return is_default or value.strip().rpartition(".")[2] in _AS_HERE.get(self.key, ())


@functools.cache
def hudi_options() -> Mapping[str, HudiOption]:
    """Return the options of JVM Hudi by their keys in lower case, as Spark writes them."""
    lines = resources.files("hoodie.config").joinpath("hudi_options.tsv").read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines[1:])
    return MappingProxyType(
        {key.lower(): HudiOption(key, default, Fate(fate), text) for key, default, fate, text in rows}
    )


_AS_HERE: Final[Mapping[str, tuple[str, ...]]] = {
    "hoodie.write.lock.conflict.resolution.strategy": (
        "SimpleConcurrentFileWritesConflictResolutionStrategy",
        "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
        "PreferWriterConflictResolutionStrategy",
    ),
}
"""Java classes, by their simple names, whose rule `hoodie` has in any case."""
