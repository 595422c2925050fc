"""Record keys and partition paths: made from columns, looked up, and found in a condition."""
