"""Build the record index while writers write: begin a build, write the files, switch the index on or off, verify it."""
