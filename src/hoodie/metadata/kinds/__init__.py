"""The kinds of metadata partitions.

Each kind is one module with the name, the rows and the merge rule of its partition.
"""
