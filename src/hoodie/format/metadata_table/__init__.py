"""Records of the metadata table: their schema, and the locations that the record index stores."""
