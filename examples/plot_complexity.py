"""Error against complexity and against λ: training error falls, test error has a least point, and rules choose near it.

Run with the name of a folder to get the figure as an SVG file: python examples/plot_complexity.py figures
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

import learnable as ln
from learnable.plots import labelled_lines, side_by_side

rng = np.random.default_rng(3)


def sample(n):
    """Return rows of a sine with noise of standard deviation 0.3."""
    x = rng.uniform(-1.0, 1.0, n)
    return x[:, None], np.sin(np.pi * x) + 0.3 * rng.normal(size=n)


x, y = sample(30)
x_test, y_test = sample(2000)


def features(z, degree):
    """Return the powers of x up to a degree."""
    return PolynomialFeatures(degree, include_bias=False).fit_transform(z)


def error(model, X, t):
    """Return the mean squared error."""
    return float(((model.predict(X) - t) ** 2).mean())


# 1. Complexity: polynomials of growing degree. Cross-validation sees the training rows only.
degrees = np.arange(1, 13)
train, test, validated = [], [], []
folds = np.arange(30) % 10
for degree in degrees.tolist():
    model = ln.LinearRegression().fit(features(x, degree), y)
    train.append(error(model, features(x, degree), y))
    test.append(error(model, features(x_test, degree), y_test))
    left_out = []
    for fold in range(10):
        rest = folds != fold
        part = ln.LinearRegression().fit(features(x[rest], degree), y[rest])
        left_out.append(error(part, features(x[~rest], degree), y[~rest]))
    validated.append(float(np.mean(left_out)))
chosen = int(np.argmin(validated))
best = int(np.argmin(test))
print(f"training error never rises with the degree: {bool((np.diff(train) <= 1e-9).all())}")
print(f"least test error at degree {degrees[best]} ({test[best]:.3f}); cross-validation chooses {degrees[chosen]}")


def cross(where, height, width):
    """Return a small upright stroke, which marks a choice on a line."""
    return np.array([where, where, where]), height * np.array([1.0 / width, 1.0, width])


by_degree = labelled_lines(
    {
        "training": (degrees, train), "test": (degrees, test), "cross-valid.": (degrees, validated),
        "chosen": cross(degrees[chosen], test[chosen], 1.6), "best": cross(degrees[best], test[best], 1.25),
    },
    y_log=True, y_range=(0.04, 1.0), title="Error against complexity", x_label="degree of the polynomial",
    y_label="mean squared error",
)  # fmt: skip

# 2. Penalty: one large model, and λ from nothing to everything. Three forms tell the same story in three parameters.
wide, wide_test = features(x, 12), features(x_test, 12)
centre, scale = wide.mean(axis=0), wide.std(axis=0)
wide, wide_test = (wide - centre) / scale, (wide_test - centre) / scale
strengths = np.geomspace(1e-6, 10.0, 40)
fits = [ln.RegularizedRisk("squared", "l2", value=float(strength)).fit(wide, y) for strength in strengths]
print("ridge", fits[20].certificate_)
train = [error(model, wide, y) for model in fits]
test = [error(model, wide_test, y_test) for model in fits]
choice = ln.RidgeCV(alphas=30.0 * strengths).fit(wide, y).alpha_ / 30.0
chosen = int(np.argmin(np.abs(np.log(strengths / choice))))
best = int(np.argmin(test))
print(f"training error never falls with λ: {bool((np.diff(train) >= -1e-9).all())}")
print(
    f"least test error at λ = {strengths[best]:.2g} ({test[best]:.3f}); leave-one-out chooses {strengths[chosen]:.2g}"
)
by_strength = labelled_lines(
    {
        "training": (strengths, train), "test": (strengths, test),
        "chosen": cross(strengths[chosen], test[chosen], 1.6), "best": cross(strengths[best], test[best], 1.25),
    },
    x_log=True, y_log=True, y_range=(0.04, 1.0), title="Error against λ", x_label="λ", y_label="mean squared error",
)  # fmt: skip
norms = np.array([model.penalty_ for model in fits])
by_norm = labelled_lines(
    {"training": (norms, train), "test": (norms, test)},
    x_log=True, y_log=True, y_range=(0.04, 1.0), title="The same against τ = Ω", x_label="τ",
    y_label="mean squared error",
)  # fmt: skip
if len(sys.argv) > 1:
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    figure = side_by_side(by_degree, by_strength, by_norm, title="Error against complexity, against λ and against τ")
    (Path(sys.argv[1]) / "complexity.svg").write_text(figure, encoding="utf-8")
