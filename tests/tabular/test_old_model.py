"""Every way in which the old model comes, and what is said when it cannot be used."""

import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from imm.strength import Linear as Schedule
from imm.tabular import IMMClassifier, IMMRegressor, load
from tests.tabular.tables import table

T = table(n=60)
P = T.old.predict_proba(T.x[:, :2])


def fitted(restricted=None, x=T.x, short=T.short, proba=None, lam=2.0, **settings):
    return IMMClassifier(short_features=short, restricted_model=restricted, lam=lam, **settings).fit(
        x, T.y, restricted_proba=proba
    )


REFERENCE = fitted(T.old)


def test_without_short_columns_rows_with_near_answers_are_averaged():
    """Q̂ at a row is a mean of Q over rows, Laplace weights over the old log-odds: in plain loops."""
    model = fitted(proba=P, short=[], n_neighbors=None)
    odds = np.log(P[:, 1] / P[:, 0])
    z = (odds - odds.mean()) / odds.std()
    q = model.predict_proba(T.x)
    distance = 0.0
    for t in range(len(z)):
        weight = np.exp(-np.abs(z - z[t]))
        induced = weight @ q / weight.sum()
        distance += (P[t] * np.log(P[t] / induced)).sum() / len(z)
    found = model.diagnose()
    assert found.with_imm == pytest.approx(distance, rel=1e-6)
    assert found.with_imm < found.without
    with pytest.raises(ValueError, match="which columns are short was not said"):
        model.induced_predict_proba(T.x[:, :0])


def test_it_helps_here():
    """The old model knows two of eight features from 2,000 rows."""
    alone = fitted(lam=0.0)
    log_loss = [-m.predict_log_proba(T.x_test)[np.arange(2000), T.y_test].mean() for m in (alone, REFERENCE)]
    assert log_loss[1] < log_loss[0] - 0.01


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"restricted": lambda short: T.old.predict_proba(short)}, "callable"),
        ({"restricted": lambda short: T.old.predict_proba(short)[:, 1]}, "callable"),
        ({"proba": P}, "column"),
        ({"proba": P[:, 1]}, "column"),
        ({"proba": P[:, 1:]}, "column"),
    ],
)
def test_forms_that_mean_the_same(settings, kind):
    model = fitted(**settings)
    assert model.restricted_ == kind
    np.testing.assert_allclose(model.coef_, REFERENCE.coef_, atol=1e-9)
    assert not model.uses_old_model_


def test_old_data_alone_or_with_all_columns():
    wide = np.zeros((2000, 8))
    wide[:, :2] = T.plenty[0]
    first, second = (fitted((x, T.plenty[1])) for x in (T.plenty[0], wide))
    assert first.restricted_ == "old data"
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(first.coef_, REFERENCE.coef_, atol=0.02)


def test_nothing_is_a_model_of_the_same_rows():
    given = fitted(IMMClassifier(lam=0.0).fit(T.x[:, :2], T.y))
    np.testing.assert_allclose(fitted().coef_, given.coef_, atol=1e-9)
    assert fitted().restricted_ == "same data"
    assert isinstance(fitted(DecisionTreeClassifier(max_depth=2)).restricted_model_, DecisionTreeClassifier)


def test_a_model_of_the_same_rows_is_fitted_in_each_fold():
    """One that remembers its rows would otherwise look perfect on those that are held out."""
    seen = []

    class Remembers(LogisticRegression):
        def fit(self, x, y):
            seen.append(len(x))
            return super().fit(x, y)

    fitted(Remembers(), lam="auto")
    assert seen.count(48) == 10  # of 5 folds, dealt twice
    assert len(seen) <= 12


def test_names_are_used_where_there_are_names():
    pandas = pytest.importorskip("pandas")
    names = [f"c{i}" for i in range(8)]
    frame = pandas.DataFrame(T.x, columns=names)
    old = LogisticRegression().fit(pandas.DataFrame(T.plenty[0][:, ::-1], columns=["c1", "c0"]), T.plenty[1])
    model = fitted(old, frame, short=None)
    assert model.short_features_.tolist() == [1, 0]
    np.testing.assert_allclose(model.coef_, REFERENCE.coef_, atol=1e-6)
    assert model.feature_names_in_.tolist() == names
    shared = fitted((frame[["c0", "c1"]], T.y), frame, short=None)
    assert shared.short_features_.tolist() == [0, 1]
    by_mask = fitted(old, frame, short=lambda table: [name in ("c0", "c1") for name in table.columns])
    np.testing.assert_allclose(by_mask.coef_, model.coef_, atol=1e-9)
    kept = fitted(old, frame, short=None, keep_old=True)
    assert np.isfinite(kept.predict_proba(frame)).all()


@pytest.mark.parametrize("short", [["c0", "c1"], ["c1", "c0"]])
def test_an_old_model_with_names_has_an_order_of_its_own(short, tmp_path):
    """Whatever the order of the short features, with names or without, when loaded, and for the induced model."""
    pandas = pytest.importorskip("pandas")
    frame, test = (pandas.DataFrame(x, columns=[f"c{i}" for i in range(8)]) for x in (T.x, T.x_test))
    named = pandas.DataFrame(T.plenty[0] * [1, 3], columns=["c0", "c1"])
    old = LogisticRegression().fit(named[["c1", "c0"]], T.plenty[1])
    twin = LogisticRegression().fit(named.to_numpy(), T.plenty[1])
    model = fitted(old, frame, short=short, keep_old=True)
    expected = fitted(twin, keep_old=True)
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model", restricted_model=old)):
        np.testing.assert_allclose(each.predict_proba(test), expected.predict_proba(T.x_test), atol=1e-6)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            np.testing.assert_allclose(each.predict_proba(T.x_test), expected.predict_proba(T.x_test), atol=1e-6)
        induced = each.induced_predict_proba(test[:5][["c1", "c0"]], frame)
        np.testing.assert_allclose(induced, expected.induced_predict_proba(T.x_test[:5, :2], T.x), atol=1e-6)
    induced = model.induced_predict_proba(test[:5][["c1", "c0"]])
    np.testing.assert_allclose(induced, expected.induced_predict_proba(T.x_test[:5, :2]), atol=1e-6)


def test_the_induced_model_of_an_old_one_that_needs_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(T.x, columns=[f"c{i}" for i in range(8)])
    model = fitted(lambda short: 0.2 + 0.5 * (short.c0 > 0), frame, short=["c0", "c1"], keep_old=True)
    short = frame[["c0", "c1"]]
    np.testing.assert_allclose(model.induced_predict_proba(short, frame), model.induced_predict_proba(short), rtol=1e-9)


@pytest.mark.parametrize("short", [["c0", "c1"], ["c2"], ["c2", "c3", "c4"]])
def test_an_old_model_of_other_columns_is_refused(short, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(T.x, columns=[f"c{i}" for i in range(8)])
    old = LogisticRegression().fit(frame[["c2", "c3"]], T.y)
    message = rf"the restricted model sees \['c2', 'c3'\], but the short columns are {re.escape(str(short))}"
    with pytest.raises(ValueError, match=message):
        fitted(old, frame, short=short)
    fitted(lambda short: np.full(len(short), 0.5), frame, short=short, keep_old=True).save(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "model", restricted_model=old)


def test_polars_tables():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(T.x, schema=[f"c{i}" for i in range(8)])
    model = fitted(lambda short: T.old.predict_proba(short.to_numpy()), frame, short=["c0", "c1"])
    np.testing.assert_allclose(model.coef_, REFERENCE.coef_, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(frame), REFERENCE.predict_proba(T.x), atol=1e-9)


def test_onnx(tmp_path):
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    for zipmap in (True, False):
        options = {id(T.old): {"zipmap": zipmap}}
        path = tmp_path / "old.onnx"
        path.write_bytes(skl2onnx.to_onnx(T.old, T.x[:1, :2].astype(np.float32), options=options).SerializeToString())
        model = fitted(str(path))
        assert model.restricted_ == "onnx"
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(T.x_test), model.predict_proba(T.x_test))
        np.testing.assert_allclose(model.coef_, REFERENCE.coef_, atol=1e-4)


def test_an_onnx_file_that_cannot_be_read_or_asked(tmp_path):
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType

    path = tmp_path / "old.onnx"
    with pytest.raises(IsADirectoryError, match="but that is a folder; name the ONNX file in it"):
        fitted(str(tmp_path))
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"old\.onnx is not an ONNX model that can be read"):
        fitted(str(path))
    for kind, message in (
        (FloatTensorType([1, 2]), r"old\.onnx does not answer for 60 rows at once"),
        (Int64TensorType([None, 2]), r"takes whole numbers only, got -?\d\.\d"),
    ):
        path.write_bytes(skl2onnx.convert_sklearn(T.old, initial_types=[("x", kind)]).SerializeToString())
        with pytest.raises(ValueError, match=message) as error:
            fitted(str(path))
        assert "\n" not in str(error.value)


def test_a_column_that_is_read_only():
    p = T.old.predict_proba(T.x[:, :2])
    p.flags.writeable = False
    np.testing.assert_allclose(fitted(proba=p).coef_, REFERENCE.coef_, atol=1e-6)


def test_keep_old_adds_one_feature_and_asks_when_predicting():
    calls = []

    def old(short):
        calls.append(len(short))
        return T.old.predict_proba(short)

    model = fitted(old, keep_old=True)
    assert model.uses_old_model_
    assert model.old_coef_.shape == (1, 1)
    assert calls == [60]
    expected = model.decision_function(T.x_test)
    assert calls == [60, 2000]
    odds = T.old.decision_function(T.x_test[:, :2])
    by_hand = T.x_test @ model.coef_[0] + model.intercept_ + odds * model.old_coef_[0]
    np.testing.assert_allclose(expected, by_hand, atol=1e-6)


def test_a_setting_that_is_changed_after_fit_is_of_the_next_fit(tmp_path):
    kept, let_go = fitted(T.old, keep_old=True), fitted(T.old)
    expected = kept.predict_proba(T.x_test), let_go.predict_proba(T.x_test)
    kept.set_params(keep_old=False)
    let_go.set_params(keep_old=True, n_neighbors=2)
    np.testing.assert_array_equal(kept.predict_proba(T.x_test), expected[0])
    np.testing.assert_array_equal(let_go.predict_proba(T.x_test), expected[1])
    assert kept.uses_old_model_
    assert not let_go.uses_old_model_
    kept.save(tmp_path / "kept")
    np.testing.assert_array_equal(load(tmp_path / "kept", restricted_model=T.old).predict_proba(T.x_test), expected[0])
    let_go.save(tmp_path / "let-go")
    np.testing.assert_array_equal(load(tmp_path / "let-go").predict_proba(T.x_test), expected[1])
    assert load(tmp_path / "let-go").n_neighbors == 32


def test_keep_old_of_many_classes_and_of_a_regression():
    many, values = table(classes=3), table(classes=0)
    model = IMMClassifier(short_features=[0, 1], restricted_model=many.old, lam=1.0, keep_old=True).fit(many.x, many.y)
    assert model.old_coef_.shape == (3, 3)
    model = IMMRegressor(short_features=[0, 1], restricted_model=values.old, keep_old=True).fit(values.x, values.y)
    assert model.old_coef_.shape == (1,)
    assert model.score(values.x_test, values.y_test) > 0.5


@pytest.mark.parametrize(("classes", "seed"), [(0, 3), (2, 1), (3, 1)])
def test_a_kept_old_model_is_mixed_in_with_a_share_that_is_chosen(classes, seed):
    t = table(seed, n=40, features=40, classes=classes)  # as many features as rows: the new model is unsure
    kind = IMMClassifier if classes else IMMRegressor
    model = kind(short_features=[0, 1], restricted_model=t.old, keep_old=True).fit(t.x, t.y)
    assert 0 < model.share_ < 1
    predict = model.predict_proba if classes else model.predict
    old = (t.old.predict_proba if classes else t.old.predict)(t.x_test[:, :2])
    mixed = predict(t.x_test)
    share, model.share_ = model.share_, 0.0
    np.testing.assert_allclose(mixed, (1 - share) * predict(t.x_test) + share * old, atol=1e-12)
    if classes:
        model.share_ = share
        np.testing.assert_allclose(np.exp(model.predict_log_proba(t.x_test)), mixed, atol=1e-12)
        assert (model.predict(t.x_test) == mixed.argmax(1)).all()


def test_a_kept_old_model_that_is_wrong_has_no_share():
    wrong = fitted(lambda short: T.old.predict_proba(short)[:, ::-1], keep_old=True, lam="auto")
    assert wrong.share_ == 0
    assert fitted(T.old, keep_old=True, lam=1.0).share_ == 0
    assert fitted(T.old, lam="auto").share_ == 0


def test_old_answers_as_a_column_are_given_again_when_predicting():
    t = table(1, n=40, features=40)
    p, at = (t.old.predict_proba(x[:, :2]) for x in (t.x, t.x_test))
    asked = IMMClassifier(short_features=[0, 1], restricted_model=t.old, keep_old=True).fit(t.x, t.y)
    given = IMMClassifier(short_features=[0, 1], keep_old=True).fit(t.x, t.y, restricted_proba=p)
    assert given.share_ == pytest.approx(asked.share_, rel=1e-6)
    np.testing.assert_allclose(given.predict_proba(t.x_test, at), asked.predict_proba(t.x_test), atol=1e-6)
    with pytest.raises(
        ValueError, match=r"answers at their rows, as restricted_proba=; .* load\(folder, restricted_model=…\)"
    ):
        given.predict(t.x_test)
    with pytest.raises(ValueError, match="restricted_proba is not needed to predict"):
        asked.predict(t.x_test, at)
    with pytest.raises(ValueError, match="keeps an old one of which only answers are known"):
        given.induced_predict_proba(t.x[:, :2])


def test_kept_answers_go_through_a_grid_search():
    t = table(n=40)
    p, at = (t.old.predict_proba(x[:, :2])[:, 1] for x in (t.x, t.x_test))
    with config_context(enable_metadata_routing=True):
        model = IMMClassifier(short_features=[0, 1], keep_old=True, lam=1.0)
        model.set_fit_request(restricted_proba=True).set_score_request(restricted_proba=True)
        found = GridSearchCV(model, {"n_neighbors": [8, 32]}, cv=2).fit(t.x, t.y, restricted_proba=p)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    best = found.best_estimator_
    assert best.score(t.x_test, t.y_test, restricted_proba=at) == (best.predict(t.x_test, at) == t.y_test).mean()
    values = table(classes=0)
    old = [values.old.predict(x[:, :2]) for x in (values.x, values.x_test)]
    regressor = IMMRegressor(short_features=[0, 1], keep_old=True).fit(values.x, values.y, restricted_pred=old[0])
    assert regressor.score(values.x_test, values.y_test, restricted_pred=old[1]) > 0.5


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["no", "yes"], ["yes", "no"]),
        (["no", "yes"], ["probability of yes", "probability of no"]),
        ([0, 1], [1, 0]),
        ([0, 1], ["1", "0"]),
        ([0.0, 1.0], ["1", "0"]),
        ([False, True], [True, False]),
    ],
)
def test_answers_with_named_columns_are_taken_by_name(labels, names):
    pandas = pytest.importorskip("pandas")
    given = pandas.DataFrame({names[0]: P[:, 1], names[1]: P[:, 0]})
    model = IMMClassifier(short_features=[0, 1], lam=2.0).fit(T.x, np.array(labels)[T.y], restricted_proba=given)
    np.testing.assert_allclose(model.coef_, REFERENCE.coef_, atol=1e-6)


@pytest.mark.parametrize("names", [["old", "new"], ["no", "no "], ["yes", "probability of yes"]])
def test_answers_with_other_names_are_refused(names):
    pandas = pytest.importorskip("pandas")
    y = np.array(["no", "yes"])[T.y]
    with pytest.raises(ValueError, match="name the columns as the classes"):
        IMMClassifier(short_features=[0, 1]).fit(T.x, y, restricted_proba=pandas.DataFrame(P, columns=names))
    numbered = IMMClassifier(short_features=[0, 1], lam=2.0).fit(T.x, y, restricted_proba=pandas.DataFrame(P))
    np.testing.assert_allclose(numbered.coef_, REFERENCE.coef_, atol=1e-6)


def test_lam_may_be_a_schedule_in_the_number_of_rows():
    assert fitted(T.old, lam=lambda n: 120 / n).lam_ == 2.0
    assert fitted(T.old, lam=Schedule(-0.001, 0.56)).lam_ == pytest.approx(1.0)


def test_the_old_model_may_know_more_classes_but_not_fewer():
    three = table(classes=3)
    some = three.y < 2
    model = IMMClassifier(short_features=[0, 1], restricted_model=three.old, lam=1.0).fit(three.x[some], three.y[some])
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"knows the classes \[0, 1\], but y has \[2\] too"):
        IMMClassifier(short_features=[0, 1], restricted_model=T.old, lam=1.0).fit(three.x, three.y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"short": ["age"]}, "has the name 'age', but the table's columns have no names"),
        ({"short": [8]}, "numbers below 8, got 8"),
        ({"short": []}, "short_features is empty"),
        ({"short": [0, 0]}, "names a column twice"),
        ({"short": [True, False]}, "has 2 booleans, but the table has 8 columns"),
        ({"restricted": T.old, "short": [0, 1, 2]}, "sees 2 features, but 3 columns are short"),
        ({"restricted": (T.plenty[0][:, :1], T.plenty[1])}, r"must have the 2 short columns, got shape \(2000, 1\)"),
        ({"restricted": (1, 2, 3)}, "got a tuple of 3"),
        ({"restricted": lambda x: x[:, 0] * 0 + 1.5}, "must be between 0 and 1, got 1.5"),
        ({"restricted": lambda x: np.ones((len(x), 2))}, "sums to 2"),
        ({"proba": P[:10]}, r"must be \[60\] for two classes or \[60, 2\], got shape \(10, 2\)"),
        ({"proba": P, "restricted": T.old}, "give the old model as restricted_model, or its answers to fit, not both"),
        ({"proba": P, "restricted": T.old, "lam": 0.0}, "not both"),
        ({"lam": -1.0}, "lam must be finite and not negative, got -1.0"),
        ({"lam": "best"}, "lam must be 'auto', a number, a schedule or a callable of n, got 'best'"),
        ({"l2": "best"}, "l2 must be 'auto' or a number, got 'best'"),
        ({"model": "forest"}, "model must be .* got 'forest'"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_input_is_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as refused:
        fitted(**settings)
    assert "\n" not in str(refused.value)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match=r"restricted_model must be a fitted estimator, .* got int"):
        fitted(3)
    with pytest.raises(TypeError, match="got the class LogisticRegression"):
        fitted(LogisticRegression)
    values = table(n=30, classes=0)
    with pytest.raises(TypeError, match="must predict values; LogisticRegression predicts classes"):
        IMMRegressor(short_features=[0, 1], restricted_model=T.old).fit(values.x, values.y)
    with pytest.raises(TypeError, match="must have predict_proba; LinearRegression has not"):
        fitted(LinearRegression().fit(*T.plenty))
