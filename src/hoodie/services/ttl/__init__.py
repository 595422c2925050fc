"""Delete the partitions whose time to live is over: `t.expire_partitions()`, and after a commit if that is on."""
