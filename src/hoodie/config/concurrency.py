"""Options of concurrent writers: locks, conflicts, retries."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import Option, count, one_of, positive

LOCK_WAIT_MS: Final = Option(
    "hoodie.write.lock.wait_time_ms",
    60_000,
    "0.8",
    "Milliseconds that a write or a service waits for the table's lock.",
    parse=count,
)
LOCK_RETRY_MS: Final = Option(
    "hoodie.write.lock.wait_time_ms_between_retry",
    100,
    "0.8",
    "Milliseconds between the first two attempts to get the table's lock; each further time is twice as long.",
    parse=positive,
)
LOCK_RETRY_MS_MAX: Final = Option(
    "hoodie.write.lock.max_wait_time_ms_between_retry",
    1_000,
    "0.8",
    "Milliseconds between two attempts to get the table's lock at most; never more than 5000.",
    parse=positive,
)
LOCK_ATTEMPTS: Final = Option(
    "hoodie.write.lock.num_retries",
    0,
    "0.8",
    "Further attempts to get the table's lock after the first one; 0: until the waiting time is over.",
    parse=count,
)
LOCK_CLIENT_RETRIES: Final = Option(
    "hoodie.write.lock.client.num_retries",
    0,
    "0.8",
    "How often a write waits for the table's lock again after the waiting time was over.",
    parse=count,
)
LOCK_CLIENT_RETRY_MS: Final = Option(
    "hoodie.write.lock.client.wait_time_ms_between_retry",
    5_000,
    "0.8",
    "Milliseconds between two of these waits.",
    parse=count,
)
LOCK_PROVIDER: Final = Option(
    "hoodie.write.lock.provider",
    "",
    "0.8",
    "Class name of the table's lock provider, the same for all writers of a table; docs/operations/locks.md. The JVM "
    "reads it from the table's properties too. Without it: FileSystemBasedLockProvider.",
)
LOCK_FILE_SYSTEM_PATH: Final = Option(
    "hoodie.write.lock.filesystem.path",
    "",
    "0.8",
    "Folder of the lock file; only the default, the table's folder .hoodie, is supported.",
)
LOCK_STORAGE_VALIDITY_SECONDS: Final = Option(
    "hoodie.write.lock.storage.validity.timeout.secs",
    300,
    "1.0.2",
    "StorageBasedLockProvider: seconds after which the lock of a dead writer ends; at least ten times the renewals.",
    parse=positive,
)
LOCK_STORAGE_RENEW_SECONDS: Final = Option(
    "hoodie.write.lock.storage.renew.interval.secs",
    30,
    "1.0.2",
    "StorageBasedLockProvider: seconds between two renewals of a lock that is held.",
    parse=positive,
)
LOCK_ZOOKEEPER_URL: Final = Option(
    "hoodie.write.lock.zookeeper.url", "", "0.8", "Servers of ZooKeeper, such as `zk1:2181,zk2:2181`."
)
LOCK_ZOOKEEPER_PORT: Final = Option(
    "hoodie.write.lock.zookeeper.port",
    0,
    "0.8",
    "Port of ZooKeeper's servers. JVM Hudi does not read it, so it must be the port in the url, or 2181 if the url has "
    "none.",
    parse=count,
)
LOCK_ZOOKEEPER_PATH: Final = Option(
    "hoodie.write.lock.zookeeper.base_path",
    "",
    "0.8",
    "ZookeeperBasedLockProvider: the node below which the table's lock node is.",
)
LOCK_ZOOKEEPER_KEY: Final = Option(
    "hoodie.write.lock.zookeeper.lock_key",
    "",
    "0.8",
    "ZookeeperBasedLockProvider: name of the table's lock node; default is the name of the table.",
)
LOCK_ZOOKEEPER_SESSION_MS: Final = Option(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    60_000,
    "0.8",
    "Milliseconds after which ZooKeeper ends the lock of a dead writer.",
    parse=positive,
)
LOCK_ZOOKEEPER_CONNECT_MS: Final = Option(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    15_000,
    "0.8",
    "Milliseconds that a writer waits for a connection to ZooKeeper.",
    parse=positive,
)
LOCK_TABLE_PATH: Final = Option(
    "hoodie.base.path",
    "",
    "0.4",
    "ZookeeperBasedImplicitBasePathLockProvider: the table's path, letter by letter as the JVM writers give it.",
)
LOCK_EXPIRE_MINUTES: Final = Option(
    "hoodie.write.lock.filesystem.expire",
    0,
    "0.12",
    "Minutes after which the lock file of a JVM writer counts as left by a dead one; 0: never. It does not concern "
    "locks of this library, which their holders renew.",
    parse=count,
)
SINGLE_WRITER: Final = "single_writer"
NON_BLOCKING: Final = "non_blocking_concurrency_control"
CONCURRENCY_MODE: Final = Option(
    "hoodie.write.concurrency.mode",
    "optimistic_concurrency_control",
    "0.8",
    "Which writes conflict. single_writer and optimistic_concurrency_control mean the same: the table's lock and the "
    "conflict check are always on. non_blocking_concurrency_control: upserts of several writers append to the log "
    "files of one file group; it requires a merge-on-read table with a record, HBase or bucket index.",
    parse=one_of(SINGLE_WRITER, "optimistic_concurrency_control", NON_BLOCKING),
)
CONFLICT_RETRIES: Final = Option(
    "hoodie.write.num.retries.on.conflict.failures",
    10,
    "0.14",
    "How often a write whose rows are staged is tried again after a conflict with another writer; 0: never.",
    parse=count,
)
EARLY_CONFLICTS: Final = Option(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    False,
    "0.13",
    "Before files are written, list the markers of running writes, and give up if one writes to the same file groups.",
)
EARLY_COMMIT_CONFLICTS: Final = Option(
    "hoodie.write.concurrency.early.conflict.check.commit.conflict",
    False,
    "0.13",
    "With early detection: load the timeline too, and give up if a write that completed changed the same file groups.",
)
