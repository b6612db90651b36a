"""Gaussian processes: draws of the prior, of the posterior, and the bands of both; hyperparameters from the data.

Run with the name of a folder to get the figures as SVG files: python examples/plot_gaussian_process.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable.kernel import GaussianProcessRegressor
from learnable.plots import function_bands, side_by_side
from learnable.risk.kernels import Gaussian, Matern, White

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
NOISE = 0.2


def truth(x):
    """Return the curve to be learned."""
    return np.sin(1.5 * x) + 0.3 * x


rng = np.random.default_rng(3)
x = np.concatenate([rng.uniform(-3.5, 0.0, 25), rng.uniform(2.0, 3.5, 10)])
y = truth(x) + NOISE * rng.standard_normal(x.size)
grid = np.linspace(-4.0, 4.0, 161)
kernel = 1.0 * Gaussian(1.0) + White(0.1)

# Before any data: every function that the kernel thinks possible.
prior = GaussianProcessRegressor(kernel)
spread = 1.96 * np.ones_like(grid)
panels = [
    function_bands(
        grid,
        np.zeros_like(grid),
        {"95 % of the function": (-spread, spread)},
        draws=prior.sample_prior(grid[:, None], 6, random_state=1).T,
        y_range=(-4.0, 4.0),
        title="prior",
    )
]

# After the data: variance, length scale and noise are those of greatest marginal likelihood.
for name, chosen in (("Gaussian kernel", kernel), ("Matérn kernel, ν = ½", 1.0 * Matern(1.0, nu=0.5) + White(0.1))):
    model = GaussianProcessRegressor(chosen).fit(x[:, None], y)
    new, function = model.predict_dist(grid[:, None]), model.predict_function(grid[:, None])
    panels.append(
        function_bands(
            grid,
            model.predict(grid[:, None]),
            {"95 % of new observations": new.interval(0.95), "95 % of the function": function.interval(0.95)},
            points=(x, y),
            draws=model.sample_y(grid[:, None], 4, random_state=2, latent=True).T,
            truth=truth(grid),
            y_range=(-4.0, 4.0),
            title=name,
        )
    )
    print(f"{name}: {model.kernel_.formula}")
    print(f"  log p(y) = {model.log_marginal_likelihood_value_:.2f}, leave-one-out {model.loo_log_density():.2f}")
    print(f"  {model.certificate_}")

if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    picture = side_by_side(*panels, title="A Gaussian process before and after 35 observations")
    (FOLDER / "gaussian_process.svg").write_text(picture, encoding="utf-8")
