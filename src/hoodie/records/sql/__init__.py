"""Spark SQL expressions in Arrow: text to syntax tree, syntax tree to typed `pyarrow.compute` expressions."""
