"""n-grams of a text of many million tokens: seconds and peak memory, from the file to the model.

The text is drawn: word frequencies fall as one over their rank (Zipf), lines have 20 words on average. Words are
independent, so that there are more different n-grams than in any real text of that length.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.memory import resident

WORDS, LINE = 50_000, 20


def write_text(path: Path, millions: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    edges = np.cumsum(1 / np.arange(1, WORDS + 1))
    names = np.array([f"w{i:x}" for i in range(WORDS)] + ["\n"])
    with path.open("w") as file:
        for _ in range(millions):
            drawn = np.searchsorted(edges, rng.random(1_000_000) * edges[-1]).clip(max=WORDS - 1)
            drawn[rng.random(len(drawn)) < 1 / LINE] = WORDS
            file.write(" ".join(names[drawn].tolist()) + " ")


def fit(path: Path, order: int, convention: str) -> dict[str, float]:
    from imm.language import fit_ngram

    before = resident("VmRSS")
    begin = time.perf_counter()
    model = fit_ngram(path, order, convention)
    return {
        "seconds": time.perf_counter() - begin,
        "peak_gb": resident("VmHWM") / 1e9,
        "libraries_gb": before / 1e9,
        "ngrams_million": len(model.trie.levels[-1].keys) / 1e6,
    }


def fit_in_new_process(path: Path, order: int, convention: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.large_text", str(path), str(order), convention]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measure(millions: int, order: int, convention: str = "stream") -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        write_text(path, millions)
        figures = fit_in_new_process(path, order, convention)
    return {f"text_{millions}m_order{order}_{name}": figure for name, figure in figures.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("order", type=int)
    parser.add_argument("convention")
    print(json.dumps(fit(**vars(parser.parse_args()))))
