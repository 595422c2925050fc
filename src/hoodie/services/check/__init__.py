"""Verify a table, and repair what is derived, orphaned or left over (docs/operations/verify-and-repair.md)."""
