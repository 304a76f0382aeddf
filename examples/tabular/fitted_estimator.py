"""The old model is a fitted scikit-learn estimator: it names its own columns.

An old model judged tumours by radius and texture; of 50 new patients all thirty measurements are known.
"""

# %% The old model: many patients, two measurements
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imm.tabular import IMMClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_old, X_rest, y_old, y_rest = train_test_split(X, y, train_size=250, random_state=0, stratify=y)
X_new, X_test, y_new, y_test = train_test_split(X_rest, y_rest, train_size=50, random_state=0, stratify=y_rest)
old = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_old[["mean radius", "mean texture"]], y_old)

# %% The new model, with the old one's help and without: which columns are short it reads from the old model
with_old = IMMClassifier(restricted_model=old).fit(X_new, y_new)
without = IMMClassifier(lam=0.0, l2=with_old.choice_.l2_without).fit(X_new, y_new)
print("short features:", [X.columns[i] for i in with_old.short_features_])

# %% What it gained
for name, p in (
    ("old model alone", old.predict_proba(X_test[["mean radius", "mean texture"]])),
    ("new model without it", without.predict_proba(X_test)),
    (f"new model with it, λ = {with_old.lam_:g}", with_old.predict_proba(X_test)),
):
    print(f"log-loss {log_loss(y_test, p):.3f}  {name}")
found = with_old.diagnose()
print(f"distance of the induced to the old model: {found.without:.3f} without IMM, {found.with_imm:.3f} with it")
