"""Hash functions as the JVM computes them, and the bloom filters that use them."""
