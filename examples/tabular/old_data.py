"""There is no old model but its data: many rows with few columns. The columns in common are the short features.

The estimator fits the old model itself. Here for a regressor: how far a disease progresses in a year.
"""

# %% Many old rows with four columns, few new rows with ten
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

from imm.tabular import IMMRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_old, X_rest, y_old, y_rest = train_test_split(X, y, train_size=200, random_state=0)
X_new, X_test, y_new, y_test = train_test_split(X_rest, y_rest, train_size=40, random_state=0)
X_old = X_old[["age", "sex", "bmi", "bp"]]

# %% The pair of both is the old model
with_old = IMMRegressor(restricted_model=(X_old, y_old)).fit(X_new, y_new)
without = IMMRegressor(lam=0.0, l2=with_old.choice_.l2_without).fit(X_new, y_new)
print("short features:", [X.columns[i] for i in with_old.short_features_])

# %% What it gained
for name, model in ((f"with the old rows, λ = {with_old.lam_:g}", with_old), ("without them", without)):
    print(f"root of the mean squared error {mean_squared_error(y_test, model.predict(X_test)) ** 0.5:.1f}  {name}")
