"""The life of a pending instant: begin, stay ours, finish under the table's lock, or undo.

This is the only room that completes an instant of the data table.
"""
