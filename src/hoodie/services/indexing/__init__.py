"""Build indexes and metadata partitions while writers write, switch a table to another index, drop and verify them."""
