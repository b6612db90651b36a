"""Linear models in a minute: least squares with intervals, ridge with its whole path, softmax regression."""

import numpy as np
from sklearn.datasets import load_diabetes, load_iris

import learnable as ln

# How sure is a straight line? Simulated, so that the truth is known: y = 1 + 2x + noise of deviation 0.5.
rng = np.random.default_rng(0)
x = rng.uniform(0.0, 3.0, size=(40, 1))
y = 1.0 + 2.0 * x[:, 0] + 0.5 * rng.standard_normal(40)
line = ln.LinearRegression().fit(x, y)
print("LinearRegression", line.certificate_)
print(line.summary())

lower, upper = line.predict_interval([[1.0], [10.0]], level=0.95)
print(f"95 % prediction interval at x =  1: {lower[0]:.2f} to {upper[0]:.2f}")
print(f"95 % prediction interval at x = 10: {lower[1]:.2f} to {upper[1]:.2f} (far from the data, so wider)")
print(f"P(y > 4 | x = 1) = {1.0 - line.predict_dist([[1.0]]).cdf(4.0)[0]:.4f}\n")

# Ridge: the penalty that predicts best, by exact leave-one-out over a hundred values.
X, progress = load_diabetes(return_X_y=True)
ridge = ln.RidgeCV(alphas=np.logspace(-4, 2, 100)).fit(X, progress)
print("RidgeCV", ridge.certificate_)
print(f"best alpha {ridge.alpha_:.3g}; R² on the same rows {ridge.score(X, progress):.3f}\n")

# Softmax regression: probabilities for three kinds of iris.
X, species = load_iris(return_X_y=True)
softmax = ln.LogisticRegression().fit(X, species)
print("LogisticRegression", softmax.certificate_)
print("probabilities of one flower:", np.round(softmax.predict_proba(X[100:101])[0], 3))
