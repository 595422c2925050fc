"""Contents of instant files: the metadata that a commit, a table service or a rollback stores on the timeline.

The archived timeline stores the same contents in Parquet files.
"""
