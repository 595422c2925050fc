"""Merge two versions of a record into one, and fold all logged versions of a record into one."""
