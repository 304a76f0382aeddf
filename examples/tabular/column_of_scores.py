"""Nothing is left of the old model but a column: what it once said of the rows to train on.

IMM needs the old probabilities at the training rows only, so a log file of old scores is enough.
"""

# %% New rows with all columns, and beside them the old probabilities
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from imm.tabular import IMMClassifier

X, progress = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
y = (progress > progress.median()).astype(int)
X_old, X_rest, y_old, y_rest = train_test_split(X, y, train_size=200, random_state=1, stratify=y)
X_new, X_test, y_new, y_test = train_test_split(X_rest, y_rest, train_size=60, random_state=1, stratify=y_rest)
short = ["age", "sex", "bmi", "bp"]
lost = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_old[short], y_old)
scores = lost.predict_proba(X_new[short])[:, 1]  # all that was kept

# %% Which columns the old model saw must be said: a column of scores does not know
with_old = IMMClassifier(short_features=short).fit(X_new, y_new, restricted_proba=scores)
without = IMMClassifier(lam=0.0, l2=with_old.choice_.l2_without).fit(X_new, y_new)

# %% What it gained
print(f"log-loss {log_loss(y_test, without.predict_proba(X_test)):.3f}  new model without the scores")
print(f"log-loss {log_loss(y_test, with_old.predict_proba(X_test)):.3f}  new model with them, λ = {with_old.lam_:g}")
