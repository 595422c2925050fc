"""Compaction of merge-on-read tables: schedule a plan, claim it, execute it, and take it back.

Log compaction and the coordination of several compactors are here too.
"""
