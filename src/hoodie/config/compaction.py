"""Options of compaction and log compaction."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import Option, compaction_strategy, count, one_of, positive

COMPACT_INLINE: Final = Option(
    "hoodie.compact.inline",
    False,
    "0.4",
    "Merge-on-read: a write after which a compaction is due schedules it and executes it before it returns.",
)
COMPACT_SCHEDULE_INLINE: Final = Option(
    "hoodie.compact.schedule.inline",
    False,
    "0.9",
    "Merge-on-read: a write after which a compaction is due schedules it; a compactor executes it.",
)
COMPACT_DELTA_COMMITS: Final = Option(
    "hoodie.compact.inline.max.delta.commits",
    5,
    "0.4",
    "Delta commits after which a compaction is due, if the trigger strategy counts delta commits.",
    parse=positive,
)
COMPACT_DELTA_SECONDS: Final = Option(
    "hoodie.compact.inline.max.delta.seconds",
    3600,
    "0.6",
    "Seconds after the last compaction at which the next compaction is due, if the trigger strategy uses the time.",
    parse=positive,
)
COMPACT_DELTA_BYTES: Final = Option(
    "hoodie.python.compact.inline.max.delta.bytes",
    1024 * 1024 * 1024,
    "hoodie",
    "Bytes of log files since the last compaction at which the next compaction is due (trigger strategy LOG_SIZE).",
    parse=positive,
)
COMPACT_TRIGGER: Final = Option(
    "hoodie.compact.inline.trigger.strategy",
    "num_commits",
    "0.6",
    "When a compaction is due; only hoodie has log_size.",
    parse=one_of(
        "num_commits",
        "num_commits_after_last_request",
        "time_elapsed",
        "num_and_time",
        "num_or_time",
        "log_size",
    ),
)
LOG_COMPACTION_BLOCKS: Final = Option(
    "hoodie.log.compaction.blocks.threshold",
    5,
    "0.12",
    "Log blocks that a file slice must have for a log compaction.",
    parse=positive,
)
LOG_COMPACTION_INLINE: Final = Option(
    "hoodie.log.compaction.inline",
    False,
    "0.13",
    "Merge-on-read: a write, or `hoodie services run`, folds many small log blocks of a file slice into one.",
)
COMPACTION_STRATEGY: Final = Option(
    "hoodie.compaction.strategy",
    "log_file_size",
    "0.4",
    "Which file slices a compaction includes: log_file_size, log_file_num, bounded_io, day_based, unbounded, or the "
    "name of a strategy class of Hudi.",
    parse=compaction_strategy,
)
COMPACTION_LOG_BYTES_MIN: Final = Option(
    "hoodie.compaction.logfile.size.threshold",
    0,
    "0.5",
    "log_file_size: bytes of log files that a file slice must have to be compacted.",
    parse=count,
)
COMPACTION_LOG_FILES_MIN: Final = Option(
    "hoodie.compaction.logfile.num.threshold",
    0,
    "0.13",
    "log_file_num: log files that a file slice must have to be compacted.",
    parse=count,
)
COMPACTION_TARGET_MIB: Final = Option(
    "hoodie.compaction.target.io",
    500 * 1024,
    "0.4",
    "Maximum MiB that one compaction reads and writes; day_based and unbounded have no limit.",
    parse=positive,
)
COMPACTION_TARGET_PARTITIONS: Final = Option(
    "hoodie.compaction.daybased.target.partitions",
    10,
    "0.4",
    "day_based: number of partitions in one compaction, newest dates first.",
    parse=positive,
)
