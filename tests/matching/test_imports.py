"""Who only matches pays for torch and numpy, and not for the products."""

import subprocess
import sys

from tests.processes import LIMIT

HEAVY = ("sklearn", "polars", "matplotlib", "typer", "rich", "transformers")


def test_importing_the_matchings_loads_nothing_of_the_products():
    code = f"import sys, imm.matching, imm.targets, imm.ngram; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert done.stdout.strip() == "[]"
