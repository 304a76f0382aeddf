"""Trees grown by XGBoost."""

from typing import Any

import numpy as np
import xgboost

from imm.tabular.engines.boosting import Array, Gradients, Ground, Trees


class XGBoost(Trees):
    """Histogram trees, grown leaf by leaf. See :class:`~imm.tabular.engines.boosting.Trees` for the settings."""

    def grow(self, before: Any, rows: Ground, objective: Gradients, n_trees: int, n_outputs: int, l2: float) -> Any:
        """See the base class."""
        settings = {
            "eta": self.learning_rate,
            "max_leaves": self.max_leaves,
            "max_depth": 0,
            "grow_policy": "lossguide",
            "tree_method": "hist",
            "min_child_weight": self.min_curvature,
            "lambda": l2,
            "base_score": 0.0,
            "nthread": self.n_threads,
            "disable_default_eval_metric": True,
        }
        if n_outputs > 1:
            settings |= {"num_class": n_outputs}
        # Earlier trees need the values of these rows: bins, which are smaller, are not where their thresholds are.
        kind = xgboost.QuantileDMatrix if before is None else xgboost.DMatrix
        every = kind(rows.x, np.zeros(len(rows.x)), nthread=self.n_threads)

        def by_output(raw: Array, _: Any) -> tuple[Array, Array]:
            gradient, curvature = objective(raw.reshape(-1, n_outputs))
            return np.ascontiguousarray(gradient), np.ascontiguousarray(curvature)

        return xgboost.train(settings, every, n_trees, obj=by_output, xgb_model=before)

    def raw(self, booster: Any, x: Array) -> Array:
        """See the base class."""
        found: Array = booster.predict(xgboost.DMatrix(x, nthread=self.n_threads), output_margin=True)
        return found

    def dump(self, booster: Any) -> bytes:
        """See the base class."""
        return bytes(booster.save_raw("json"))

    def load(self, stored: bytes) -> Any:
        """See the base class."""
        booster = xgboost.Booster()
        booster.load_model(bytearray(stored))
        return booster
