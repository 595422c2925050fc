"""Options of JVM Hudi in the names of `hoodie`, as `hudi_options.tsv` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie.config.hudi_options import Fate, HudiOption, hudi_options
from hoodie.config.known import OPTIONS
from hoodie.errors import InvalidConfigError

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
_PAYLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    "hoodie.datasource.write.payload.class": (
        "AWSDmsAvroPayload",
        "EventTimeAvroPayload",
        "MySqlDebeziumAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "PartialUpdateAvroPayload",
        "PostgresDebeziumAvroPayload",
    ),
}
"""Java classes, by simple names, that stay values of `hoodie.compaction.payload.class`."""


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
            known, payloads, name = (
                _CLASSES[option.key],
                _PAYLOADS.get(option.key, ()),
                value.strip().rpartition(".")[2],
            )
            if name in payloads:
                return "hoodie.compaction.payload.class", value.strip()
            if name not in known:
                names = ", ".join([*known, *payloads])
                raise InvalidConfigError(f"{option.key}={value!r} has no counterpart here; expected one of {names}")
            return (option.text, known[name]) if known[name] else (None, value)
        case Fate.CALL | Fate.REFUSED if not option.asks_for_nothing(value):
            raise InvalidConfigError(f"{option.key}={value!r} is not supported: {option.text}")
        case Fate.IDLE | Fate.CALL | Fate.REFUSED:
            return None, value
        case _:
            return option.key, value
