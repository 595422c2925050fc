"""What a row means: its key and partition path, conditions over it, and which of its versions counts.

All functions take and return whole Arrow batches.
"""
