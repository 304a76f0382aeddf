"""The induced model of a fitted estimator, and the diagnostic."""

import numpy as np
import pytest

from imm.tabular import IMMClassifier, IMMRegressor, Network
from tests.tabular.tables import table


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("lam", "keep_old"), [(1.0, False), (1.0, True), ("auto", True)])
def test_all_neighbours_by_hand(classes, lam, keep_old, seed):
    t = table(seed, n=20, features=20, classes=classes)
    model = IMMClassifier(
        short_features=t.short, restricted_model=t.old, lam=lam, n_neighbors=None, alpha=0.0, keep_old=keep_old
    ).fit(t.x, t.y)
    asked = t.x_test[:5, :2]
    expected = []
    for short in asked:
        mixed = t.x.copy()
        mixed[:, :2] = short
        expected.append(model.predict_proba(mixed).mean(0))
    np.testing.assert_allclose(model.induced_predict_proba(asked), expected, atol=1e-9)
    np.testing.assert_allclose(model.induced_predict_proba(asked, X=t.x), expected, atol=1e-9)


def test_groups_are_the_rows_that_have_the_short_context():
    t = table(n=60)
    x = t.x.copy()
    x[:, :2] = np.sign(x[:, :2])
    model = IMMClassifier(short_features=t.short, restricted_model=t.old, lam=1.0, n_neighbors=5).fit(x, t.y)
    for short in np.array([[1.0, 1.0], [-1.0, 1.0]]):
        same = (x[:, :2] == short).all(1)
        assert same.sum() >= 5
        expected = model.predict_proba(x[same]).mean(0)
        np.testing.assert_allclose(model.induced_predict_proba(short[None])[0], expected, atol=1e-9)


def test_matching_brings_the_induced_model_near_the_old_one(seed):
    t = table(seed)
    model = IMMClassifier(short_features=t.short, restricted_model=t.old, lam=10.0).fit(t.x, t.y)
    found = model.diagnose()
    assert 0 <= found.with_imm < found.without
    assert found.lam == 10.0
    induced, old = model.induced_predict_proba(t.x[:, :2]), t.old.predict_proba(t.x[:, :2])
    assert found.with_imm == pytest.approx((old * np.log(old / induced)).sum(1).mean(), abs=1e-9)


def test_an_old_model_that_is_mixed_in_is_part_of_the_distance():
    t = table(1, n=40, features=40)
    model = IMMClassifier(short_features=t.short, restricted_model=t.old, keep_old=True).fit(t.x, t.y)
    assert model.share_ > 0
    induced, old = model.induced_predict_proba(t.x[:, :2]), t.old.predict_proba(t.x[:, :2])
    assert model.diagnose().with_imm == pytest.approx((old * np.log(old / induced)).sum(1).mean(), abs=1e-9)


def test_the_same_for_a_regression(seed):
    t = table(seed, classes=0)
    model = IMMRegressor(short_features=t.short, restricted_model=t.old, lam=10.0).fit(t.x, t.y)
    found = model.diagnose()
    assert found.with_imm < found.without
    induced = model.induced_predict(t.x[:, :2])
    assert found.with_imm == pytest.approx(((induced - t.old.predict(t.x[:, :2])) ** 2).mean(), abs=1e-9)


def test_a_network_has_an_induced_model_too():
    t = table(n=30)
    model = IMMClassifier(Network(epochs=2), short_features=t.short, restricted_model=t.old, lam=1.0).fit(t.x, t.y)
    np.testing.assert_allclose(model.induced_predict_proba(t.x_test[:3, :2]).sum(1), 1, atol=1e-6)


def test_named_columns_are_taken_by_name():
    pandas = pytest.importorskip("pandas")
    t = table(n=40)
    x = pandas.DataFrame(t.x, columns=[f"c{i}" for i in range(8)])
    model = IMMClassifier(short_features=["c0", "c1"], restricted_model=t.old, lam=1.0)
    model.fit(x, t.y)
    expected = model.induced_predict_proba(t.x[:3, :2])
    np.testing.assert_allclose(model.induced_predict_proba(x[["c1", "c0"]][:3]), expected, atol=1e-12)
    with pytest.raises(ValueError, match="has 'c1', which is not among the columns"):
        model.induced_predict_proba(x[["c0", "c2"]])
    with pytest.raises(ValueError, match="feature names"):
        model.induced_predict_proba(t.x[:3, :2], X=x[["c0", "c2"]])


def test_refusals():
    t = table(n=30)
    with pytest.raises(ValueError, match="there is no old model to compare with"):
        IMMClassifier(lam=0.0).fit(t.x, t.y).diagnose()
    with pytest.raises(ValueError, match=r"a table with the 8 short columns, got shape \(5, 2\)"):
        IMMClassifier(lam=0.0).fit(t.x, t.y).induced_predict_proba(t.x[:5, :2])
