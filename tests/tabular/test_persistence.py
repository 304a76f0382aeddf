"""Models on disk."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import nn

from imm.tabular import IMMClassifier, IMMRegressor, Network, load
from tests.tabular.tables import table


@pytest.mark.parametrize("model", ["linear", "mlp", "factory"])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_what_is_loaded_predicts_the_same(tmp_path, model, classes):
    t = table(n=30, classes=classes)
    engine = {"factory": lambda d, k: nn.Linear(d, k)}.get(model, model)
    kind = IMMClassifier if classes else IMMRegressor
    y = np.array(["no", "yes", "é"])[t.y] if classes else t.y
    saved = kind(engine, short_features=t.short, lam=lambda n: 0.5).fit(t.x, y)
    saved.save(tmp_path / "model")
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == ["model.json", "model.safetensors"]
    loaded = load(tmp_path / "model", model=engine if model == "factory" else None)
    np.testing.assert_array_equal(loaded.predict(t.x_test), saved.predict(t.x_test))
    assert loaded.lam_ == 0.5
    if classes:
        np.testing.assert_array_equal(loaded.predict_proba(t.x_test), saved.predict_proba(t.x_test))
        short = t.x_test[:4, :2]
        expected = saved.induced_predict_proba(short, X=t.x)
        np.testing.assert_allclose(loaded.induced_predict_proba(short, X=t.x), expected)
    if model == "linear":
        np.testing.assert_array_equal(loaded.coef_, saved.coef_)


def test_names_and_the_choice_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    t = table(n=30, features=3)
    frame = pandas.DataFrame(t.x, columns=["a", "b", "c"])
    model = IMMClassifier(short_features=["a", "b"], restricted_model=t.old).fit(frame, t.y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(loaded.choice_.mean, model.choice_.mean)
    assert (loaded.choice_.lams, loaded.choice_.l2s) == (model.choice_.lams, model.choice_.l2s)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize("model", ["linear", "mlp", "lightgbm"])
def test_a_model_that_keeps_old_answers(tmp_path, model):
    if model == "lightgbm":
        pytest.importorskip("lightgbm")
    t = table(1, n=40, features=40)
    p = [t.old.predict_proba(x[:, :2]) for x in (t.x, t.x_test)]
    lam = "auto" if model == "linear" else 1.0
    saved = IMMClassifier(model, short_features=t.short, lam=lam, keep_old=True).fit(t.x, t.y, restricted_proba=p[0])
    assert (saved.share_ > 0) == (model == "linear")
    saved.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(t.x_test, p[1]), saved.predict_proba(t.x_test, p[1]))


@pytest.mark.parametrize("kind", [IMMClassifier, IMMRegressor])
@pytest.mark.parametrize("given", ["estimator", "callable", "old data", "same data"])
def test_a_model_that_keeps_an_old_one_is_given_it_again(tmp_path, kind, given):
    classes = 2 if kind is IMMClassifier else 0
    t = table(1, n=40, features=40, classes=classes)
    ask = t.old.predict_proba if classes else t.old.predict
    old = {"estimator": t.old, "callable": ask, "old data": (t.x[:, :2], t.y), "same data": None}[given]
    saved = kind(short_features=t.short, restricted_model=old, keep_old=True).fit(t.x, t.y)
    saved.save(tmp_path / "model")
    expected = saved.predict(t.x_test)
    loaded = load(tmp_path / "model", restricted_model=saved.restricted_model_)
    assert loaded.uses_old_model_
    np.testing.assert_array_equal(loaded.predict(t.x_test), expected)
    alone = load(tmp_path / "model")
    if given in ("estimator", "callable"):
        again = clone(loaded).fit(t.x, t.y)
        np.testing.assert_array_equal(again.predict(t.x_test), expected)
        # A view of the table is laid out otherwise than the copy that the model shows the old one.
        answers = ask(t.x_test[:, :2])
        np.testing.assert_allclose(alone.predict(t.x_test, answers), expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="there is no old model to ask: predictions need its answers"):
        alone.predict(t.x_test)


def test_only_a_model_that_asks_the_old_one_is_given_it(tmp_path):
    t = table(n=30)
    model = IMMClassifier(short_features=t.short, restricted_model=t.old, lam=1.0)
    model.fit(t.x, t.y).save(tmp_path / "let-go")
    with pytest.raises(ValueError, match="does not ask the old model, so give none"):
        load(tmp_path / "let-go", restricted_model=t.old)
    model.set_params(keep_old=True).fit(t.x, t.y).save(tmp_path / "kept")
    wrongs = {"LogisticRegression, which is not fitted": LogisticRegression(), "tuple": (t.x, t.y), "int": 3}
    wrongs["the class LogisticRegression"] = LogisticRegression
    for what, wrong in wrongs.items():
        with pytest.raises(TypeError, match=f"must be a fitted estimator, .* got {what}$"):
            load(tmp_path / "kept", restricted_model=wrong)
    with pytest.raises(ValueError, match="sees 8 features, but 2 columns are short"):
        load(tmp_path / "kept", restricted_model=LogisticRegression().fit(t.x, t.y)).predict(t.x_test)


def test_an_old_model_must_see_a_column(tmp_path):
    t = table(n=30)
    model = IMMClassifier(short_features=[], keep_old=True, lam=1.0)
    model.fit(t.x, t.y, restricted_proba=t.old.predict_proba(t.x[:, :2])).save(tmp_path / "m")
    with pytest.raises(ValueError, match="short_features is empty: the old model must see a column"):
        load(tmp_path / "m", restricted_model=lambda short: np.full(len(short), 0.5))


def test_settings_come_back(tmp_path):
    t = table(n=30)
    IMMClassifier(short_features=t.short, lam=lambda n: 150 / n, random_state=7).fit(t.x, t.y).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert (loaded.random_state, loaded.lam) == (7, 5.0)
    with pytest.raises(ValueError, match="this model was loaded and has no training rows to compare on"):
        loaded.diagnose()


def test_another_model_than_it_was_trained_with(tmp_path):
    t = table(n=30)
    IMMClassifier(Network(hidden=(5,), epochs=1), lam=0.0).fit(t.x, t.y).save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"was trained with another model than model= gives: .*size mismatch"):
        load(tmp_path / "m", model=Network(hidden=(6,)))
    with pytest.raises(TypeError, match=r"model must be .* got int"):
        load(tmp_path / "m", model=3)


def test_labels_that_cannot_be_saved(tmp_path):
    t = table(n=30)
    y = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")[t.y]
    with pytest.raises(ValueError, match="only labels that are numbers or strings can be saved"):
        IMMClassifier(lam=0.0).fit(t.x, y).save(tmp_path / "m")


def test_refusals(tmp_path):
    t = table(n=30)
    with pytest.raises(FileNotFoundError, match=r"is not a saved model: it has no model\.json"):
        load(tmp_path / "nowhere")
    IMMClassifier(Network(epochs=1), lam=0.0).fit(t.x, t.y).save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"trained with a model of your own \(Network\): give it as model="):
        load(tmp_path / "m")
    with pytest.raises(ValueError, match="was trained with Network, but model= is Linear"):
        load(tmp_path / "m", model="linear")
    IMMClassifier(lam=0.0).fit(t.x, t.y).save(tmp_path / "m")
    with pytest.raises(ValueError, match="this model was loaded and has no training rows"):
        load(tmp_path / "m").induced_predict_proba(t.x)
    record = json.loads((tmp_path / "m" / "model.json").read_text())
    (tmp_path / "m" / "model.json").write_text(json.dumps(record | {"share": "much"}))
    with pytest.raises(ValueError, match=r"is damaged \(TypeError 'much' is no number\)"):
        load(tmp_path / "m")
    (tmp_path / "m" / "model.json").write_text(json.dumps(record | {"format": 9}))
    with pytest.raises(ValueError, match="has format 9; this version of imm reads format 5"):
        load(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match="is damaged"):
        load(tmp_path / "m")
