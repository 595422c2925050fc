"""Move the oldest instants of the active timeline to its archive: `t.archive()`, and the archiving after a write."""
