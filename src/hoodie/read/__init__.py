"""Reads, one module for each kind: plan what is read, then read it in this process or hand it to Spark."""
