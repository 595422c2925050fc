"""Clustering: rewrite file slices into larger base files, optionally sorted, so that queries read fewer files."""
