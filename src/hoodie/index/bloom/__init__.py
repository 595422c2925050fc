"""The bloom indexes: key ranges of files leave out most comparisons, bloom filters most of the others.

The files that remain are searched as the simple indexes do. docs/indexes/bloom.md.
"""
