"""The table's lock: one front (`TableLock`), and one module for each lock provider that the JVM has too."""
