"""Trees grown by LightGBM."""

from typing import Any

import lightgbm
import numpy as np

from imm.tabular.engines.boosting import Array, Gradients, Ground, Trees


class LightGBM(Trees):
    """Histogram trees, grown leaf by leaf. See :class:`~imm.tabular.engines.boosting.Trees` for the settings."""

    def grow(self, before: Any, rows: Ground, objective: Gradients, n_trees: int, n_outputs: int, l2: float) -> Any:
        """See the base class."""
        if not np.ptp(rows.x[: rows.n], axis=0).any():
            return before  # LightGBM refuses rows that are all the same

        def by_output(raw: Array, _: Any) -> tuple[Array, Array]:
            gradient, curvature = objective(raw.reshape(-1, n_outputs))
            return (gradient[:, 0], curvature[:, 0]) if n_outputs == 1 else (gradient, curvature)

        settings: dict[str, Any] = {
            "objective": "none",
            "num_class": n_outputs,
            "learning_rate": self.learning_rate,
            "num_leaves": self.max_leaves,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": self.min_curvature,
            "lambda_l2": l2,
            "num_threads": self.n_threads,
            "deterministic": True,
            "force_row_wise": True,
            "feature_pre_filter": False,
            "enable_bundle": rows.n == len(rows.x),  # columns that exclude each other in data rows need not in pairs
            "verbosity": -1,
        }
        # Thresholds are those of data rows: pairs have every value many times, and would make them finer.
        bins = lightgbm.Dataset(rows.x[: rows.n], np.zeros(rows.n), params=settings)
        every = bins if rows.n == len(rows.x) else bins.create_valid(rows.x, np.zeros(len(rows.x)))
        # Begun anew from the trees so far: a booster that is given other rows (`update`) writes out of bounds.
        settings["objective"] = by_output
        return lightgbm.train(settings, every, n_trees, init_model=before, keep_training_booster=True)

    def raw(self, booster: Any, x: Array) -> Array:
        """See the base class."""
        if booster is None:
            return np.zeros(len(x))
        found: Array = booster.predict(x, raw_score=True, num_threads=self.n_threads)
        return found

    def dump(self, booster: Any) -> bytes:
        """See the base class."""
        text: str = "" if booster is None else booster.model_to_string()
        return text.encode()

    def load(self, stored: bytes) -> Any:
        """See the base class."""
        return lightgbm.Booster(model_str=stored.decode()) if stored else None
