"""Writes whose rows are computed from rows of the table: merges, partial upserts, changes by condition."""
