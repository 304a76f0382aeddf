"""scikit-learn's own contract, and how the estimators live with its other parts."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import imm.tabular.engines.linear
from imm.tabular import IMMClassifier, IMMRegressor, Network
from tests.tabular.tables import table


@pytest.mark.filterwarnings("default")  # scikit-learn's checks warn of their own
@parametrize_with_checks(
    [
        IMMClassifier(),
        IMMRegressor(),
        IMMClassifier(lam=1.0, short_features=[0]),
        IMMClassifier(short_features=[0], keep_old=True),
        IMMRegressor(short_features=[0], keep_old=True),
        IMMClassifier(Network(epochs=30), lam=1.0, short_features=[0]),
        IMMRegressor(Network(epochs=30), lam=1.0, short_features=[0]),
        *(
            kind(model, lam=1.0, short_features=[0], keep_old=kept)
            for kind in (IMMClassifier, IMMRegressor)
            for model in ("lightgbm", "xgboost")
            if find_spec(model)
            for kept in (False, True)
        ),
    ]
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def test_a_fitted_old_model_stays_fitted_in_a_clone():
    t = table()
    copy = clone(clone(IMMClassifier(restricted_model=t.old, short_features=t.short, lam=1.0)))
    assert isinstance(copy.restricted_model, FrozenEstimator)
    assert copy.restricted_model.estimator is t.old
    assert copy.fit(t.x, t.y).restricted_ == "estimator"


def test_an_old_model_that_is_not_fitted_is_cloned_as_ever():
    old = LogisticRegression(C=3.0)
    copy = clone(IMMClassifier(restricted_model=old))
    assert copy.restricted_model is not old
    assert copy.restricted_model.C == 3.0


def test_pipeline_and_grid_search():
    t = table()
    pipeline = make_pipeline(StandardScaler(), IMMClassifier(short_features=t.short, restricted_model=t.old, l2=1.0))
    search = GridSearchCV(pipeline, {"immclassifier__lam": [0.0, 1.0]}, cv=3, scoring="neg_log_loss").fit(t.x, t.y)
    assert search.best_estimator_[-1].restricted_ == "estimator"
    assert search.score(t.x_test, t.y_test) > -0.7


def test_grid_search_reaches_an_engines_own_settings():
    t = table()
    search = GridSearchCV(IMMClassifier(imm.tabular.Linear(), lam=0.0), {"model__max_iter": [1, 100]}, cv=3)
    assert search.fit(t.x, t.y).best_params_ == {"model__max_iter": 100}


def test_a_column_of_old_probabilities_is_cut_into_folds_with_the_rows():
    t = table()
    p = t.old.predict_proba(t.x[:, t.short])[:, 1]
    search = GridSearchCV(IMMClassifier(short_features=t.short), {"lam": [0.0, 1.0]}, cv=3)
    search.fit(t.x, t.y, restricted_proba=p, sample_weight=np.ones(len(p)))
    assert search.best_estimator_.restricted_ in ("column", None)


def test_a_class_missing_from_a_fold():
    t = table(n=60, classes=3)
    y = np.array(["a", "b", "c"])[t.y]
    old = LogisticRegression().fit(t.plenty[0], np.array(["a", "b", "c"])[t.plenty[1]])
    rare = np.flatnonzero(y == "c")[1:]
    x, y = np.delete(t.x, rare, 0), np.delete(y, rare)  # one row of a class: some folds must lack it
    for lam in ("auto", 1.0):
        estimator = IMMClassifier(short_features=t.short, restricted_model=old, lam=lam)
        assert estimator.fit(x, y).predict_proba(t.x_test).shape == (len(t.x_test), 3)
        scores = cross_val_score(estimator, x, y, cv=KFold(2, shuffle=True, random_state=0), error_score="raise")
        assert np.isfinite(scores).all()


def test_two_classes_only_one_row_of_one():
    t = table(n=12)
    y = np.zeros(12, dtype=int)
    y[3] = 1
    assert IMMClassifier().fit(t.x, y).predict_proba(t.x).shape == (12, 2)


def test_metadata_routing_of_weights():
    import sklearn

    t = table()
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = IMMClassifier(lam=1.0).set_fit_request(sample_weight=True, restricted_proba=False)
        assert clone(estimator).get_metadata_routing().fit.requests["sample_weight"] is True
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), estimator)
        weight = np.arange(1.0, len(t.y) + 1)
        weighted = pipeline.fit(t.x, t.y, sample_weight=weight)[-1].coef_
        assert not np.allclose(weighted, pipeline.fit(t.x, t.y)[-1].coef_)


def test_string_labels_and_their_order():
    t = table()
    words = np.array(["no", "yes"])
    old = LogisticRegression().fit(t.plenty[0], words[t.plenty[1]])
    a = IMMClassifier(short_features=t.short, restricted_model=old, lam=1.0).fit(t.x, words[t.y])
    b = IMMClassifier(short_features=t.short, restricted_model=t.old, lam=1.0).fit(t.x, t.y)
    assert a.classes_.tolist() == ["no", "yes"]
    assert set(a.predict(t.x)) <= {"no", "yes"}
    np.testing.assert_allclose(a.predict_proba(t.x), b.predict_proba(t.x))
    c = IMMClassifier(short_features=t.short, restricted_model=old, lam=1.0).fit(t.x, words[1 - t.y])
    assert c.score(t.x, words[1 - t.y]) < a.score(t.x, words[t.y])  # the old model is wrong about these
