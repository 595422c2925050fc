"""The sources of ingestions, one module each; `registry.py` names them."""
