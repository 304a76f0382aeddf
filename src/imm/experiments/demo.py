"""The main job in miniature, on data that comes with scikit-learn: an old model on few features, few new rows.

Will a patient's diabetes have progressed after a year? The old model saw what needs no laboratory (age, sex,
body mass, blood pressure) of many patients; of a few new ones six blood values are known too. Every way to use
the old model is trained on the same few rows and judged on the same others, over repeated draws. The penalty is
chosen for full-only by cross-validation on the few rows and shared by all; so is λ, for IMM and reverse KD alike.

With 30 new rows instead of 50 the old model alone has the lowest log-loss: there is too little to learn from.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from imm.experiments.study import Figure, Row, Settings, Study
from imm.experiments.summaries import spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

METHODS = ("full-only", "old-only", "stacking", "reverse-kd", "imm")
QUANTITIES = ("log-loss", "accuracy, %", "AUC")


def fit_linear(
    x: "Array", y: "NDArray[np.int64]", old: "Array", short: Sequence[int], l2: float, method: str, lam: float
) -> "Array":
    """Logistic regression by L-BFGS with ``λ`` times a second loss; ``[features + 1]``, bias last.

    Args:
        x: ``[n, features]``.
        y: ``[n]``, 0 or 1.
        old: the old model's probability of 1 at each row, ``[n]``.
        short: the old model's columns.
        l2: the factor of ``½ |w|² / n``; scikit-learn's ``1 / C``.
        method: ``full-only``, ``imm`` or ``reverse-kd``.
        lam: λ.
    """
    import torch
    from torch.nn.functional import logsigmoid, nll_loss

    from imm import baselines, functional
    from imm.inducers import Kernel
    from imm.matching import Exact

    features, labels = torch.from_numpy(x), torch.from_numpy(y)
    target = torch.from_numpy(old)
    target = torch.stack([1 - target, target], 1)
    is_short = torch.zeros(x.shape[1], dtype=torch.bool)
    is_short[list(short)] = True
    weights = torch.zeros(x.shape[1] + 1, dtype=features.dtype, requires_grad=True)
    rows = torch.arange(len(x))

    def log_q(rows: torch.Tensor) -> torch.Tensor:
        logits = rows @ weights[:-1] + weights[-1]
        return logsigmoid(torch.stack([-logits, logits], 1))

    def predict(short: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        mixed = features[index]
        mixed[:, is_short] = short
        return log_q(mixed)

    matching = Exact(target, Kernel(features[:, is_short], alpha=1.0), predict)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        here = log_q(features)
        total = nll_loss(here, labels) + 0.5 * l2 / len(x) * weights[:-1].square().sum()
        if method == "imm" and lam:
            total = functional.objective(total, matching(here, features[:, is_short], rows), lam)
        if method == "reverse-kd" and lam:
            total = functional.objective(total, baselines.reverse_kd(here, target), lam)
        total.backward()
        return total

    optimizer.step(loss)
    return weights.detach().numpy()


def pieces(settings: Settings) -> list[Row]:
    """Each draw of rows."""
    return [{"draw": draw} for draw in range(settings["runs"])]


def run(settings: Settings, piece: Row) -> Sequence[Row]:
    """All methods on one draw: one old model, one set of few rows, one set of test rows."""
    import numpy as np
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from imm.strength import choose_lam

    data = load_diabetes(scaled=False)
    y = (data.target > np.median(data.target)).astype(np.int64)
    short = [data.feature_names.index(name) for name in settings["short"]]
    seed = settings["seed"] + piece["draw"]
    rest, test = train_test_split(np.arange(len(y)), test_size=settings["test_rows"], random_state=seed, stratify=y)
    plenty, few = train_test_split(rest, test_size=settings["n"], random_state=seed, stratify=y[rest])

    old_model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data.data[plenty][:, short], y[plenty])
    old = old_model.predict_proba(data.data[:, short])[:, 1]
    x = StandardScaler().fit(data.data[few]).transform(data.data)

    def predict(weights: "Array", rows: Any) -> "Array":
        proba: Array = 1 / (1 + np.exp(-(x[rows] @ weights[:-1] + weights[-1])))
        return proba

    def held_out(l2: float, method: str, lam: float, fitted: Any, held: Any) -> float:
        weights = fit_linear(x[few[fitted]], y[few[fitted]], old[few[fitted]], short, l2, method, lam)
        return float(log_loss(y[few[held]], predict(weights, few[held]), labels=[0, 1]))

    def chosen(loss: Callable[[float, Any, Any], float], candidates: Sequence[float]) -> float:
        return choose_lam(loss, y[few], candidates, n_repeats=settings["repeats"], seed=seed).lam

    l2 = chosen(lambda l2, *fold: held_out(l2, "full-only", 0.0, *fold), settings["l2s"])
    lams = {
        method: chosen(lambda lam, *fold, method=method: held_out(l2, method, lam, *fold), settings["lams"])
        for method in ("reverse-kd", "imm")
    }
    proba = {
        method: predict(fit_linear(x[few], y[few], old[few], short, l2, method, lams.get(method, 0.0)), test)
        for method in ("full-only", "reverse-kd", "imm")
    }
    with_score = np.hstack([x, np.log(old / (1 - old))[:, None]])
    stack = LogisticRegression(C=1 / l2).fit(with_score[few], y[few])
    proba |= {"old-only": old[test], "stacking": stack.predict_proba(with_score[test])[:, 1]}
    return [
        {"method": method, "quantity": quantity, "draw": piece["draw"], "lam": lams.get(method), "value": float(value)}
        for method in METHODS
        for quantity, value in (
            ("log-loss", log_loss(y[test], proba[method])),
            ("accuracy, %", 100 * accuracy_score(y[test], proba[method] > 0.5)),
            ("AUC", roc_auc_score(y[test], proba[method])),
        )
    ]


def over_draws(rows: Sequence[Row]) -> list[Row]:
    """Mean and 10th and 90th percentiles over draws, in how many draws full-only was beaten, and the λ chosen."""
    import numpy as np

    summary: list[Row] = []
    for quantity in QUANTITIES:
        of = {m: [row for row in rows if (row["method"], row["quantity"]) == (m, quantity)] for m in METHODS}
        values = {method: np.array([row["value"] for row in of[method]]) for method in METHODS}
        sign = -1 if quantity == "log-loss" else 1
        for method in METHODS:
            lams = [row["lam"] for row in of[method] if row["lam"] is not None]
            summary.append(
                {
                    "method": method,
                    "quantity": quantity,
                    **spread(values[method]),
                    "beats_full_only": int((sign * (values[method] - values["full-only"]) > 0).sum()),
                    "median_lam": float(np.median(lams)) if lams else None,
                }
            )
    return summary


STUDY = Study(
    name="demo",
    title="An old model without blood values helps a new one that has them",
    settings={
        "short": ["age", "sex", "bmi", "bp"],
        "n": 50,
        "test_rows": 150,
        "l2s": [1.0, 10.0, 100.0],
        "lams": [0.0, 1.0, 10.0],
        "repeats": 2,
        "runs": 20,
        "seed": 0,
    },
    quick={"runs": 4},
    pieces=pieces,
    run=run,
    summarise=over_draws,
    figure=Figure(x="method", x_label="", y_label="", panel="quantity"),
)
