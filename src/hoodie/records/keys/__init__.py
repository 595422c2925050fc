"""Record keys and partition paths: made from columns, looked up, and told by a condition."""
