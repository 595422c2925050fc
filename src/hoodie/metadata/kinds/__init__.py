"""The registry of metadata partition kinds.

Each kind is one module with the name, the first content, the rows and the merge rule of its partition.
"""
