"""Merging versions of records: which of two counts, and how the versions in a log become one."""
