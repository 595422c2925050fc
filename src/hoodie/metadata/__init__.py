"""The metadata table: data derived from the data table, which can always be rebuilt.

`table.MetadataTable` is the only way to change it. Each kind of metadata partition is one module in `kinds/`.
"""
