"""The old model is a function: a scorecard from short features to a probability, and its score is kept.

With ``keep_old=True`` the old score is one more feature of the new model and is mixed into its predictions, so that it
asks the function whenever it predicts.
"""

# %% A scorecard on body mass and blood pressure; few patients with all ten measurements
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from imm.tabular import IMMClassifier

X, progress = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
y = (progress > progress.median()).astype(int)
X_new, X_test, y_new, y_test = train_test_split(X, y, train_size=60, random_state=0, stratify=y)


def scorecard(short):
    """Points as a doctor may have written them down; ``[n]``, the probability of progress above the median."""
    points = 0.19 * (np.asarray(short["bmi"]) - 26.4) + 0.03 * (np.asarray(short["bp"]) - 94.6)
    return 1 / (1 + np.exp(-points))


# %% Train
short = ["bmi", "bp"]
models = {
    "IMM": IMMClassifier(short_features=short, restricted_model=scorecard).fit(X_new, y_new),
    "IMM, old score kept": IMMClassifier(short_features=short, restricted_model=scorecard, keep_old=True).fit(
        X_new, y_new
    ),
}
without = IMMClassifier(lam=0.0, l2=models["IMM"].choice_.l2_without).fit(X_new, y_new)

# %% What it gained
print(f"log-loss {log_loss(y_test, scorecard(X_test)):.3f}  scorecard alone")
print(f"log-loss {log_loss(y_test, without.predict_proba(X_test)):.3f}  new model without it")
for name, model in models.items():
    asks = "asks it at each prediction" if model.uses_old_model_ else "does not need it any more"
    print(f"log-loss {log_loss(y_test, model.predict_proba(X_test)):.3f}  {name}, λ = {model.lam_:g}: {asks}")
