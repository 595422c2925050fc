"""Writes: one module per operation."""
