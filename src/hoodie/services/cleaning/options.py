"""The options of a clean: what it retains, and when it is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from hoodie import config as options
from hoodie.config.patterns import match_whole
from hoodie.errors import InvalidConfigError


class Policy(Enum):
    """What a clean retains. On disk (plans and metadata of cleans): do not change."""

    COMMITS = "KEEP_LATEST_COMMITS"
    """Every file that a snapshot of one of the newest commits needs."""
    HOURS = "KEEP_LATEST_BY_HOURS"
    """Every file that a snapshot of a commit of the last hours needs."""
    VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    """The newest file slices of every file group."""

    @property
    def counts_versions(self) -> bool:
        """Whether the policy counts file slices, so that it has no earliest commit to retain."""
        return self is Policy.VERSIONS


_RETAINED = {
    Policy.COMMITS: options.CLEAN_COMMITS_RETAINED,
    Policy.HOURS: options.CLEAN_HOURS_RETAINED,
    Policy.VERSIONS: options.CLEAN_VERSIONS_RETAINED,
}

_ONE_WAY = (
    options.CLEAN_TRIGGER,
    options.CLEAN_FAILED_WRITES,
    options.CLEAN_ASYNC,
    options.CLEAN_SEVERAL,
    options.CLEAN_BOOTSTRAP_FILES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOptions:
    """The options of one clean. `retained` counts commits, hours or file versions, as the policy says.

    `partitions` and `pattern` limit a clean that is not incremental to some partitions; empty: all.
    """

    policy: Policy = Policy.COMMITS
    retained: int = options.CLEAN_COMMITS_RETAINED.default
    is_incremental: bool = True
    trigger_commits: int = 1
    commits_max: int = options.CLEAN_COMMITS_MAX.default
    empty_clean_hours: int = -1
    partitions: frozenset[str] = frozenset()
    pattern: str = ""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> CleanOptions:
        """Return the options that these properties define.

        Without `hoodie.clean.policy`, the policy is the one of the only retention option that is set, else
        KEEP_LATEST_COMMITS.

        Raises: InvalidConfigError if a value does not parse, or a filter of partitions has incremental planning on.
        """
        policy = _policy(properties)
        for option in _ONE_WAY:
            # Parsed for its error: there is one way.
            option.get(properties)
        named = options.CLEAN_PARTITIONS_SELECTED.get(properties)
        pattern = options.CLEAN_PARTITIONS_PATTERN.get(properties)
        is_incremental = options.CLEAN_INCREMENTAL.get(properties)
        if is_incremental and (named or pattern):
            key = options.CLEAN_PARTITIONS_SELECTED.key if named else options.CLEAN_PARTITIONS_PATTERN.key
            raise InvalidConfigError(
                f"{key} is set, and {options.CLEAN_INCREMENTAL.key} is true: the next incremental clean would skip the "
                f"other partitions; set {options.CLEAN_INCREMENTAL.key}=false with it"
            )
        return cls(
            policy=policy,
            retained=_RETAINED[policy].get(properties),
            is_incremental=is_incremental,
            trigger_commits=options.CLEAN_TRIGGER_COMMITS.get(properties),
            commits_max=options.CLEAN_COMMITS_MAX.get(properties),
            empty_clean_hours=options.EMPTY_CLEAN_HOURS.get(properties),
            partitions=frozenset(filter(None, named.split(","))),
            pattern=pattern,
        )

    def selects(self, partition_path: str) -> bool:
        """Return whether a clean of all partitions includes this one."""
        if self.partitions:
            return partition_path in self.partitions
        return not self.pattern or match_whole(self.pattern, [partition_path])[0]


def _policy(properties: Mapping[str, str]) -> Policy:
    given = [policy for policy, option in _RETAINED.items() if option.key in properties]
    if options.CLEAN_POLICY.key not in properties and len(given) == 1:
        return given[0]
    return Policy(options.CLEAN_POLICY.get(properties).upper())
