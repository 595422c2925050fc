"""The procedures of CALL, one module for each subject; `registry.py` lists them."""
