"""Builds of the record index, and the comparison of a whole index with the data: plan, size, files, check.

The services call these modules. `services/indexing/` adds a build to the timeline and switches the index on.
"""
