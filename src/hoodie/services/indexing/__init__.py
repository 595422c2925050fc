"""Builds of the record index beside writers: begin, write the buckets, switch the index on or off, and verify it."""
