"""Modules of an extra that is not installed have no doctests to run."""

from importlib.util import find_spec

NEED_TRANSFORMERS = [
    "src/imm/huggingface/*",
    "src/imm/experiments/glue/*",
    "studies/little_text/*",
    "tests/huggingface/tiny.py",
]
collect_ignore_glob = [] if find_spec("transformers") else NEED_TRANSFORMERS
