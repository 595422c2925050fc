"""Delete file slices that no reader needs any more: `t.clean()`, and the clean that follows a commit."""
