"""Builds of the record index, and the comparison of a whole index with the data: plan, size, files, check.

The services call this; what puts a build on the timeline and switches it on is in `services/indexing/`.
"""
