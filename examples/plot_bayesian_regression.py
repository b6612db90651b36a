"""Bayesian regression: what is known about a curve after few and after many observations, and which curve it is.

Run with the name of a folder to get the figures as SVG files: python examples/plot_bayesian_regression.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable.linear import BayesianLinearRegression
from learnable.plots import function_bands, labelled_lines, side_by_side

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
NOISE = 0.25
CENTRES, WIDTH = np.linspace(-4.0, 4.0, 25), 0.8


def truth(x):
    """Return the curve to be learned."""
    return np.sin(1.5 * x) + 0.3 * x


def features(x):
    """Bumps along the line: a straight line in 25 columns is a curve."""
    return np.exp(-0.5 * ((x[:, None] - CENTRES) / WIDTH) ** 2)


# Observations that leave a gap between 0.3 and 2, where nothing is seen.
rng = np.random.default_rng(3)
x = np.concatenate([rng.uniform(-3.5, 0.3, 60), rng.uniform(2.0, 3.5, 20)])
rng.shuffle(x)
y = truth(x) + NOISE * rng.standard_normal(x.size)
grid = np.linspace(-4.0, 4.0, 121)
panels = []
for n in (6, 20, 80):
    model = BayesianLinearRegression("known", noise_std=NOISE, prior_std=1.0).fit(features(x[:n]), y[:n])
    new, function = model.predict_dist(features(grid)), model.predict_function(features(grid))
    panels.append(
        function_bands(
            grid,
            model.predict(features(grid)),
            {"95 % of new observations": new.interval(0.95), "95 % of the function": function.interval(0.95)},
            points=(x[:n], y[:n]),
            draws=model.sample_functions(features(grid), 5, random_state=n),
            truth=truth(grid),
            y_range=(-4.0, 4.0),
            title=f"{n} observations",
        )
    )
    gap, seen = (float(function.std[np.argmin(abs(grid - at))]) for at in (1.2, -1.5))
    print(f"{n:2d} observations: the function is known to ±{seen:.2f} at -1.5, to ±{gap:.2f} in the gap, at 1.2")
    print(f"  {model.certificate_}")

# The noise need not be known: one pass, and the scales of greatest evidence.
estimated = BayesianLinearRegression().fit(features(x), y)
print(f"greatest evidence: noise {estimated.alpha_**-0.5:.2f} (true {NOISE}), prior {estimated.lambda_**-0.5:.2f}, "
      f"{estimated.effective_parameters_:.1f} effective coefficients of {CENTRES.size}")  # fmt: skip
print(f"  {estimated.certificate_}")
student = BayesianLinearRegression("unknown").fit(features(x), y)
low, high = np.sqrt(student.noise_dist().interval(0.95))
print(f"unknown noise: between {low:.2f} and {high:.2f} with probability 0.95; predictions are Student-t")

# The evidence of polynomials rises while a degree explains the data; what it does not need is shrunk, and adds nothing.
degrees = np.arange(1, 16)
evidence, errors = [], []
new_x = rng.uniform(-3.5, 3.5, 2000)
for degree in degrees:
    powers = lambda v, top=degree: np.polynomial.legendre.legvander(v / 4.0, top)[:, 1:]  # noqa: E731
    model = BayesianLinearRegression().fit(powers(x), y)
    evidence.append(model.log_marginal_likelihood_)
    errors.append(np.sqrt(np.mean((model.predict(powers(new_x)) - truth(new_x)) ** 2)))
best = int(degrees[np.argmax(evidence)])
print(f"the evidence chooses degree {best}; of all degrees {int(degrees[np.argmin(errors)])} is best on new data")

if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    picture = side_by_side(*panels, title="Bayesian regression after 6, 20 and 80 observations")
    (FOLDER / "bayesian_regression.svg").write_text(picture, encoding="utf-8")
    curve = labelled_lines(
        {"log-evidence": (degrees, evidence)}, title="Evidence of polynomials", x_label="degree", y_label="log p(y)"
    )
    (FOLDER / "bayesian_evidence.svg").write_text(curve, encoding="utf-8")
