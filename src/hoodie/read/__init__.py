"""Reads: one module per way to read."""
