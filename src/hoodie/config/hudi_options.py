"""What becomes of the options of JVM Hudi 1.2 that `hoodie` does not have under the same name.

`hudi_options.tsv` has one row for each key of JVM Hudi's configuration, old and second names too: the key, its default
in the JVM, its fate, and a text. `docs/options.md` shows the table; `scripts/hudi_options.py` compares it with a bundle
of JVM Hudi. It is read when a call has a key that `hoodie` does not know.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from types import MappingProxyType
from typing import Final

from hoodie.config.known import OPTIONS
from hoodie.errors import InvalidConfigError


class Fate(StrEnum):
    """What `hoodie` does with an option of JVM Hudi; the comments say what the text of the row is."""

    USED = "used"  # no text: it is an option of `hoodie.config`, or a property of a table
    NAME = "name"  # the key that it is another name of
    CLASS = "class"  # the key whose value the Java class, or the value of JVM Hudi, stands for
    IDLE = "idle"  # why it has no effect
    CALL = "call"  # the argument or method that says the same
    REFUSED = "refused"  # what to do instead; the JVM's default value is accepted, as it asks for nothing


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


_CLASSES: Final[Mapping[str, Mapping[str, str]]] = {
    "hoodie.datasource.write.keygenerator.class": {
        "SimpleKeyGenerator": "SIMPLE",
        "SimpleAvroKeyGenerator": "SIMPLE",
        "ComplexKeyGenerator": "COMPLEX",
        "ComplexAvroKeyGenerator": "COMPLEX",
        "NonpartitionedKeyGenerator": "NON_PARTITION",
        "NonpartitionedAvroKeyGenerator": "NON_PARTITION",
        "TimestampBasedKeyGenerator": "TIMESTAMP",
        "TimestampBasedAvroKeyGenerator": "TIMESTAMP",
        "CustomKeyGenerator": "CUSTOM",
        "CustomAvroKeyGenerator": "CUSTOM",
    },
    "hoodie.datasource.write.payload.class": {
        "OverwriteWithLatestAvroPayload": "COMMIT_TIME_ORDERING",
        "DefaultHoodieRecordPayload": "EVENT_TIME_ORDERING",
    },
    "hoodie.clustering.plan.strategy.class": {
        "SparkSizeBasedClusteringPlanStrategy": "",
        "SparkRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
        "SparkSelectedPartitionsClusteringPlanStrategy": "SELECTED_PARTITIONS",
    },
    "hoodie.datasource.write.insert.drop.duplicates": {"true": "drop", "false": "none"},
}
"""Values of options by the simple names of Java classes, or by values of JVM Hudi; an empty one is the default."""
_KEPT: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "hoodie.datasource.write.payload.class": (
        "hoodie.compaction.payload.class",
        frozenset(
            {
                "AWSDmsAvroPayload",
                "EventTimeAvroPayload",
                "MySqlDebeziumAvroPayload",
                "OverwriteNonDefaultsWithLatestAvroPayload",
                "PartialUpdateAvroPayload",
                "PostgresDebeziumAvroPayload",
            }
        ),
    ),
}
"""Options with the key that has the same value here, if the value is one of these Java classes, by simple names."""
_AS_HERE: Final[Mapping[str, tuple[str, ...]]] = {
    "hoodie.write.lock.conflict.resolution.strategy": (
        "SimpleConcurrentFileWritesConflictResolutionStrategy",
        "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
        "PreferWriterConflictResolutionStrategy",
    ),
}
"""Java classes, by their simple names, whose rule `hoodie` has in any case."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The options of a call in the names of `hoodie`, and those without effect here."""

    properties: Mapping[str, str]
    idle: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """The note of a result about options without effect; none if there is no such option."""
        if not self.idle:
            return ()
        return (f"without effect here, see docs/options.md: {', '.join(sorted(self.idle))}",)


def translated(properties: Mapping[str, str]) -> Translation:
    """Translate options with names of JVM Hudi; keys that are neither JVM Hudi's nor ours stay as they are.

    Raises: InvalidConfigError for an option that is refused, for a Java class without a counterpart, and for two names
    of one option with different values.

    >>> found = translated({"hoodie.cleaner.commits.retained": "3", "hoodie.upsert.shuffle.parallelism": "200"})
    >>> found.properties, found.idle
    ({'hoodie.clean.commits.retained': '3'}, {'hoodie.upsert.shuffle.parallelism': '200'})
    """
    if properties.keys() <= OPTIONS.keys():
        return Translation(properties)
    found: dict[str, str] = {}
    idle: dict[str, str] = {}
    source: dict[str, str] = {}
    for key, value in properties.items():
        option = None if key in OPTIONS else hudi_options().get(key.lower())
        name, meaning = (key, value) if option is None else _meaning(option, value)
        if name is None:
            idle[key] = value
        elif name in found and found[name].lower() != meaning.lower():
            raise InvalidConfigError(
                f"{source[name]}={properties[source[name]]!r} and {key}={value!r} are names of one option, {name}: "
                "give one of them"
            )
        else:
            found[name], source[name] = meaning, key
    return Translation(found, idle)


def _meaning(option: HudiOption, value: str) -> tuple[str | None, str]:
    """Return the key and the value of an option here; no key if it has no effect. Raises: as `translated`."""
    match option.fate:
        case Fate.NAME:
            target = hudi_options().get(option.text)
            return (option.text, value) if target is None else _meaning(target, value)
        case Fate.CLASS:
            name, kept = _KEPT.get(option.key, ("", ()))
            if value.strip().rpartition(".")[2] in kept:
                return name, value.strip()
            meaning = _value_of_class(option, value)
            return (option.text, meaning) if meaning else (None, value)
        case Fate.CALL | Fate.REFUSED if not option.asks_for_nothing(value):
            raise InvalidConfigError(f"{option.key}={value!r} is not supported: {option.text}")
        case Fate.IDLE | Fate.CALL | Fate.REFUSED:
            return None, value
        case _:
            return option.key, value


def _value_of_class(option: HudiOption, value: str) -> str:
    known = _CLASSES[option.key]
    name = value.strip().rpartition(".")[2]
    if name not in known:
        names = ", ".join([*known, *sorted(_KEPT.get(option.key, ("", ()))[1])])
        raise InvalidConfigError(f"{option.key}={value!r} has no counterpart here; expected one of {names}")
    return known[name]
