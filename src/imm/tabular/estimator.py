"""What the classifier and the regressor share."""

from abc import ABCMeta, abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from imm.strength import Linear as Schedule
from imm.tabular.columns import column_numbers, table_names, take
from imm.tabular.distinct_rows import Array, distinct
from imm.tabular.engines import engine_for
from imm.tabular.engines.linear import LinearFit
from imm.tabular.fitting import ENOUGH, Data, Setup
from imm.tabular.induced import Diagnosis, distance, induced_at
from imm.tabular.old_model import Known, Old, Refitted, Source, find_source, is_fitted, own_columns
from imm.tabular.persistence import save
from imm.tabular.selection import Choice
from imm.tabular.tasks import Task, mix
from imm.validation import check_count, check_not_negative


class BaseIMM(BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """A full model that is matched with an old one; see :class:`imm.tabular.IMMClassifier`."""

    _answers: str
    """What old answers are called."""

    def __init__(
        self,
        model: Any = "linear",
        short_features: Any = None,
        restricted_model: Any = None,
        lam: Any = "auto",
        l2: Any = "auto",
        keep_old: bool = False,
        n_neighbors: int | None = 32,
        alpha: float = 1.0,
        standardize: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.short_features = short_features
        self.restricted_model = restricted_model
        self.lam = lam
        self.l2 = l2
        self.keep_old = keep_old
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.standardize = standardize
        self.random_state = random_state

    def __sklearn_clone__(self) -> Self:
        """A fitted restricted model stays fitted: it is frozen."""
        parameters = self.get_params(deep=False)
        old = parameters.pop("restricted_model")
        if isinstance(old, BaseEstimator) and is_fitted(old) and not isinstance(old, FrozenEstimator):
            old = FrozenEstimator(old)
        copy = type(self)(
            **{name: clone(value, safe=False) for name, value in parameters.items()},
            restricted_model=clone(old, safe=False),
        )
        if hasattr(self, "_metadata_request"):
            copy._metadata_request = clone(self._metadata_request, safe=False)
        return copy

    @abstractmethod
    def _prepare_labels(self, y: Array) -> tuple[Task, Array]:
        """What kind of labels these are, and they themselves as class numbers or values."""

    def _fit(self, X: Any, y: Any, sample_weight: Any, answers: Any) -> Self:
        x, y = validate_data(self, X, y, dtype=(np.float64, np.float32), y_numeric=not hasattr(self, "predict_proba"))
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row")
        task, y = self._prepare_labels(y)
        self.short_features_ = self._short_columns(X)
        short = np.zeros(x.shape[1], dtype=bool)
        short[self.short_features_] = True
        self._setup = Setup(
            task=task,
            engine=engine_for(self.model),
            short=short,
            keep_old=bool(self.keep_old),
            n_neighbors=None if self.n_neighbors is None else check_count(self.n_neighbors, "n_neighbors"),
            alpha=check_not_negative(self.alpha, "alpha"),
            standardize=bool(self.standardize),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        if answers is not None and self.restricted_model is not None:
            raise ValueError("give the old model as restricted_model, or its answers to fit, not both")
        lam, l2 = self._fixed_lam(float(weight.sum())), self._fixed_l2()
        source = values = None
        if lam != 0 or self.keep_old:
            source, values = self._ask_old(X, answers)
        data = self._distinct_rows(x, y, weight, source, values)
        self.choice_: Choice | None = None
        if lam is None and len(data.x) > 1:
            lam, self.choice_ = self._setup.choose(data, l2)
        self.lam_ = lam or 0.0
        self.l2_ = self.choice_.l2 if self.choice_ else 1.0 if l2 is None else l2
        self.share_ = 0.0
        if self.keep_old and self.choice_:
            self.share_ = self._setup.choose_share(data, self.l2_, self.choice_.lam)
        self._scaling, self._trained, _ = self._setup.train(data, self.l2_, self.lam_)
        if isinstance(data.old, Refitted):
            source = Source("same data", data.old.fit(np.arange(len(data.x))), self.short_features_)
        self._source = source
        self._data: Data | None = data
        self.restricted_ = None if source is None else source.kind
        self.restricted_model_ = None if source is None else source.model
        self._publish_coefficients()
        return self

    def _short_columns(self, X: Any) -> Any:
        names = table_names(X)
        wanted = self.short_features
        if wanted is None:
            wanted = own_columns(self.restricted_model, names)
        if wanted is None:
            return np.arange(self.n_features_in_)
        return column_numbers(wanted, X, names, self.n_features_in_)

    def _fixed_lam(self, n: float) -> float | None:
        """λ if it need not be chosen."""
        lam = self.lam
        if isinstance(lam, str):
            if lam != "auto":
                raise ValueError(f"lam must be 'auto', a number, a schedule or a callable of n, got {lam!r}")
            return None
        return check_not_negative(lam.lam(n) if isinstance(lam, Schedule) else lam(n) if callable(lam) else lam, "lam")

    def _fixed_l2(self) -> float | None:
        if not isinstance(self.l2, str):
            return check_not_negative(self.l2, "l2")
        if self.l2 != "auto":
            raise ValueError(f"l2 must be 'auto' or a number, got {self.l2!r}")
        return None

    def _ask_old(self, X: Any, answers: Any) -> tuple[Source, Array | None]:
        """The old model, and its word at every row; None if it must be fitted on these rows first."""
        default = type(self)(lam=0.0)
        source = find_source(self.restricted_model, answers is not None, X, self.short_features_, default)
        if source.kind == "column":
            return source, self._setup.task.given(answers, len(X))
        return source, None if source.model is None else source.ask(X, self._setup.task)

    def _distinct_rows(self, x: Array, y: Array, weight: Array, source: Source | None, values: Array | None) -> Data:
        """Equal rows made one, those without weight left out: a weight of 2 is then the row twice, everywhere."""
        used = weight > 0
        if not used.all():
            x, y, weight = x[used], y[used], weight[used]
            values = None if values is None else values[used]
        # A model's answers follow from x, and to equal rows may differ by rounding; those of a column are its own. The
        # order, and so the folds, are the same whatever the old model says.
        same = distinct(x, y, also=values if source is not None and source.kind == "column" else None)
        order = same.first
        if len(order) < len(x) or len(x) <= ENOUGH:  # else a large table would be copied for nothing
            weight = same.total(weight)
            x, y, values = x[order], y[order], None if values is None else values[order]
            order = np.arange(len(x))
        old: Old | None = None
        if values is not None:
            old = Known(values)
        elif source is not None:
            estimator = type(self)(lam=0.0) if self.restricted_model is None else self.restricted_model
            old = Refitted(estimator, x[:, self.short_features_].astype(np.float64), y, weight, self._setup.task)
        return Data(x, y, weight, old, order)

    def _publish_coefficients(self) -> None:
        """``coef_`` and ``intercept_`` in the table's units, if the full model has any."""
        if not isinstance(self._trained, LinearFit):
            return
        weight = self._trained.weight / self._scaling.scale[:, None]
        bias = self._trained.bias - self._scaling.mean @ weight
        n = self.n_features_in_
        flat = not self._setup.task.n_classes
        self.coef_ = weight[:n, 0] if flat else weight[:n].T.copy()
        self.intercept_ = float(bias[0]) if flat else bias
        if self._setup.keep_old:
            self.old_coef_ = weight[n:, 0] if flat else weight[n:].T.copy()

    def _scores(self, X: Any, answers: Any) -> Array:
        check_is_fitted(self)
        x = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        old = self._old_at(X, answers)
        scores = self._trained.scores(self._scaling(self._setup.with_old(x, old)))
        return scores if old is None or not self.share_ else self._setup.task.mixed(scores, old, self.share_)

    def _old_at(self, X: Any, answers: Any) -> Array | None:
        """The old model's word at rows to predict; None if it is not needed."""
        task = self._setup.task
        if self._setup.keep_old and self.restricted_ == "column":
            if answers is None:
                raise ValueError(
                    "keep_old=True, and there is no old model to ask: predictions need its answers at their rows,"
                    f" as {self._answers}=; a saved one may be loaded with its old model, by"
                    " load(folder, restricted_model=…)"
                )
            return task.given(answers, len(X))
        if answers is not None:
            raise ValueError(
                f"{self._answers} is not needed to predict: give it if keep_old=True and no old model can be asked"
            )
        return self._old.ask(X, task) if self._setup.keep_old else None

    @property
    def _old(self) -> Source:
        assert self._source is not None
        return self._source

    @property
    def uses_old_model_(self) -> bool:
        """Whether predictions ask the old model (``keep_old=True``). If not, it may be thrown away."""
        check_is_fitted(self)
        return self._setup.keep_old

    def _induced(self, short: Any, X: Any) -> Array:
        """The full model averaged over the extended contexts of rows ``X``, the training rows if None."""
        check_is_fitted(self)
        setup, width = self._setup, len(self.short_features_)
        if not width:
            raise ValueError("there is no induced model to ask: which columns are short was not said")
        names = table_names(short)
        if names is not None and hasattr(self, "feature_names_in_"):
            own = self.feature_names_in_[self.short_features_]
            short = take(short, column_numbers(own, short, names, len(names)))
        values = np.asarray(short, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != width or not len(values):
            raise ValueError(f"short must be a table with the {width} short columns, got shape {values.shape}")
        if setup.keep_old and self.restricted_ == "column":
            raise ValueError("this model keeps an old one of which only answers are known: it cannot be asked")
        old: Array | None = None
        if X is not None:
            rows = validate_data(self, X, dtype=np.float64, reset=False)
            weight = np.ones(len(rows))
            old = self._old.ask(X, setup.task) if setup.keep_old else None
        elif self._data is not None:
            rows, weight = np.asarray(self._data.x, dtype=np.float64), self._data.weight
            if setup.keep_old and self._data.old is not None:
                old, _ = self._data.old.on(np.arange(len(rows)), np.arange(0))
        else:
            raise ValueError("this model was loaded and has no training rows; give rows with all columns as X")
        asked_old = self._old.ask_short(short, setup.task) if setup.keep_old else None
        asked = np.zeros((len(values), self.n_features_in_))
        asked[:, self.short_features_] = values
        induced = induced_at(
            setup,
            self._trained,
            self._scaling(setup.with_old(rows, old)),
            weight,
            self._scaling(setup.with_old(asked, asked_old)),
        )
        return induced if asked_old is None else mix(induced, asked_old, self.share_)

    def save(self, path: str | Path) -> None:
        """Writes a folder with JSON and safetensors, which :func:`imm.tabular.load` reads; the old model is not in it.

        With ``keep_old=True`` it must be given again when loading, or its answers when predicting.
        """
        check_is_fitted(self)
        save(self, path)

    def diagnose(self) -> Diagnosis:
        """How far the new model's induced predictions are from the old model's, without IMM and with it.

        Trains once more, with λ = 0. Mean Kullback–Leibler divergence for a classifier, mean squared difference
        for a regressor, over the training rows' short contexts.
        """
        check_is_fitted(self)
        data, setup = self._data, self._setup
        if data is None:
            raise ValueError("this model was loaded and has no training rows to compare on")
        if data.old is None:
            raise ValueError("there is no old model to compare with: it was not needed for lam=0")
        problem = setup.pose(data, np.arange(len(data.x)), np.arange(0)).problem
        l2 = self.choice_.l2_without if self.choice_ else self.l2_
        without = setup.engine.prepare(problem, setup.seed).solve(l2, 0.0)
        after = distance(setup, self._trained, problem, self.share_)
        return Diagnosis(without=distance(setup, without, problem), with_imm=after, lam=self.lam_)
