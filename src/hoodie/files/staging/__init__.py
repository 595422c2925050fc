"""Changes of a write, staged as Arrow files between two steps of the write, and spilled tables."""
