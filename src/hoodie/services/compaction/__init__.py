"""Compaction of merge-on-read tables: schedule a plan, claim it, execute it, or roll it back.

The package also contains log compaction and the coordination of several compactors.
"""
