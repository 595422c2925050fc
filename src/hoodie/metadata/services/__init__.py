"""Table services of the metadata table: compaction, cleaning and archiving.

They run at the start of a commit, under the table's lock.
"""
