"""Rows: record keys and partition paths, conditions in Spark SQL, and merging the versions of a record.

All functions take and return whole Arrow batches.
"""
