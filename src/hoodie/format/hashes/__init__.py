"""Hash functions as the JVM computes them, and the bloom filters that are made with them."""
