"""Begin a pending instant, keep its ownership, and complete it under the table's lock or undo it.

This is the only package that completes an instant of the data table.
"""
