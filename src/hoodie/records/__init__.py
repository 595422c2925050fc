"""Records: keys, partition paths, ordering, merging; whole Arrow batches."""
