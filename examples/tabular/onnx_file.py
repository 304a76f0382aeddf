"""The old model is an ONNX file, as another team or another language exported it.

Needs ``pip install 'imm[onnx]'``; skl2onnx writes the file here, which somebody else would have done.
"""

# %% Somebody's file: a model of the upper half of an image that tells odd digits
import tempfile
from pathlib import Path

from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from imm.tabular import IMMClassifier

X, digit = load_digits(return_X_y=True)
X, y = X.astype("float32"), digit % 2
X_old, X_rest, y_old, y_rest = train_test_split(X, y, train_size=900, random_state=0, stratify=y)
X_new, X_test, y_new, y_test = train_test_split(X_rest, y_rest, train_size=100, random_state=0, stratify=y_rest)
upper = list(range(32))
old = LogisticRegression(C=0.01, max_iter=1000).fit(X_old[:, upper], y_old)
path = Path(tempfile.mkdtemp()) / "upper_half.onnx"
path.write_bytes(to_onnx(old, X_old[:1, upper], options={"zipmap": False}).SerializeToString())

# %% A few whole images, and the file
with_old = IMMClassifier(short_features=upper, restricted_model=path).fit(X_new, y_new)
without = IMMClassifier(lam=0.0, l2=with_old.choice_.l2_without).fit(X_new, y_new)

# %% What it gained
print(f"log-loss {log_loss(y_test, old.predict_proba(X_test[:, upper])):.3f}  the file's model alone")
print(f"log-loss {log_loss(y_test, without.predict_proba(X_test)):.3f}  new model without it")
print(f"log-loss {log_loss(y_test, with_old.predict_proba(X_test)):.3f}  new model with it, λ = {with_old.lam_:g}")
