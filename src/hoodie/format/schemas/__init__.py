"""Avro schemas of the format's records, one `<record>.avsc` each, in the exact text that the JVM embeds in files."""
