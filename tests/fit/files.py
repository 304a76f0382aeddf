"""Small tables in files, with an old model that knows two of their columns."""

from pathlib import Path

import numpy as np
import polars as pl


def people(n: int, seed: int, regression: bool = False) -> pl.DataFrame:
    """Ages and homes, which the old model knows; income, job, a date and a number for each row, which it does not."""
    rng = np.random.default_rng(seed)
    age, income = rng.integers(20, 70, n), rng.normal(size=n)
    home, job = rng.choice(["own", "rent", "other"], n), rng.choice(["a", "b", "c", "d"], n)
    score = 0.06 * (age - 45) + 1.2 * (home == "own") - 0.6 + 0.9 * income + 0.5 * (job == "a")
    y = score + rng.normal(size=n) if regression else np.where(score + rng.logistic(size=n) > 0, "yes", "no")
    return pl.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "age": age,
            "home": home,
            "income": [None if i % 9 == 0 else round(float(v), 3) for i, v in enumerate(income)],
            "job": job,
            "since": [f"20{10 + i % 12}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(n)],
            "country": ["XX"] * n,
            "score": 1 / (1 + np.exp(-0.06 * (age - 45) - 1.2 * (home == "own") + 0.6)),
            "y": y,
        }
    )


def write_people(folder: Path, n: int = 60, n_old: int = 600, regression: bool = False) -> tuple[Path, Path]:
    """New rows without the score, and old rows with two columns and the label."""
    new, old = folder / "new.csv", folder / "old.csv"
    people(n, 0, regression).drop("score").write_csv(new)
    people(n_old, 1, regression).select("age", "home", "y").write_csv(old)
    return new, old
