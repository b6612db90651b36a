"""EM and k-means on Old Faithful, step by step: assignments, ellipses, the density, and the bound that EM raises.

Run with the name of a folder to get the figures as SVG files: python examples/plot_em.py figures
"""

import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np

from learnable import GaussianMixture, KMeans, MixtureModel, VariationalGaussianMixture, verify
from learnable.plots import labelled_lines, side_by_side
from learnable.plots.axes import ACCENT, MUTED, Frame
from learnable.plots.markup import tag
from learnable.plots.optimization import contour_lines
from learnable.probability import MultivariateNormal

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
COLOURS = (ACCENT, "var(--ln-warn, #b3541e)")

# Old Faithful: duration of 272 eruptions, in thousandths of a minute, and minutes until the next
# (A. Azzalini and A. Bowman, A look at some data on the Old Faithful geyser, Applied Statistics 39, 1990).
ERUPTIONS = (
    "3600 1800 3333 2283 4533 2883 4700 3600 1950 4350 1833 3917 4200 1750 4700 2167 1750 4800 1600 4250 1800 1750 "
    "3450 3067 4533 3600 1967 4083 3850 4433 4300 4467 3367 4033 3833 2017 1867 4833 1833 4783 4350 1883 4567 1750 "
    "4533 3317 3833 2100 4633 2000 4800 4716 1833 4833 1733 4883 3717 1667 4567 4317 2233 4500 1750 4800 1817 4400 "
    "4167 4700 2067 4700 4033 1967 4500 4000 1983 5067 2017 4567 3883 3600 4133 4333 4100 2633 4067 4933 3950 4517 "
    "2167 4000 2200 4333 1867 4817 1833 4300 4667 3750 1867 4900 2483 4367 2100 4500 4050 1867 4700 1783 4850 3683 "
    "4733 2300 4900 4417 1700 4633 2317 4600 1817 4417 2617 4067 4250 1967 4600 3767 1917 4500 2267 4650 1867 4167 "
    "2800 4333 1833 4383 1883 4933 2033 3733 4233 2233 4533 4817 4333 1983 4633 2017 5100 1800 5033 4000 2400 4600 "
    "3567 4000 4500 4083 1800 3967 2200 4150 2000 3833 3500 4583 2367 5000 1933 4617 1917 2083 4583 3333 4167 4333 "
    "4500 2417 4000 4167 1883 4583 4250 3767 2033 4433 4083 1833 4417 2183 4800 1833 4800 4100 3966 4233 3500 4366 "
    "2250 4667 2100 4350 4133 1867 4600 1783 4367 3850 1933 4500 2383 4700 1867 3833 3417 4233 2400 4800 2000 4150 "
    "1867 4267 1750 4483 4000 4117 4083 4267 3917 4550 4083 2417 4183 2217 4450 1883 1850 4283 3950 2333 4150 2350 "
    "4933 2900 4583 3833 2083 4367 2133 4350 2200 4450 3567 4500 4150 3817 3917 4450 2000 4283 4767 4533 1850 4250 "
    "1983 2250 4750 4117 2150 4417 1817 4467 "
)
WAITING = (
    "79 54 74 62 85 55 88 85 51 85 54 84 78 47 83 52 62 84 52 79 51 47 78 69 74 83 55 76 78 79 73 77 66 80 74 52 48 "
    "80 59 90 80 58 84 58 73 83 64 53 82 59 75 90 54 80 54 83 71 64 77 81 59 84 48 82 60 92 78 78 65 73 82 56 79 71 "
    "62 76 60 78 76 83 75 82 70 65 73 88 76 80 48 86 60 90 50 78 63 72 84 75 51 82 62 88 49 83 81 47 84 52 86 81 75 "
    "59 89 79 59 81 50 85 59 87 53 69 77 56 88 81 45 82 55 90 45 83 56 89 46 82 51 86 53 79 81 60 82 77 76 59 80 49 "
    "96 53 77 77 65 81 71 70 81 93 53 89 45 86 58 78 66 76 63 88 52 93 49 57 77 68 81 81 73 50 85 74 55 77 83 83 51 "
    "78 84 46 83 55 81 57 76 84 77 81 87 77 51 78 60 82 91 53 78 46 77 84 49 83 71 80 49 75 64 76 53 94 55 76 50 82 "
    "54 75 78 79 78 78 70 79 70 54 86 50 90 54 54 77 79 64 75 47 86 63 85 82 57 82 67 74 54 83 73 73 88 80 71 83 56 "
    "79 78 84 58 83 43 60 75 81 46 90 46 74 "
)
rows = np.column_stack([np.array(ERUPTIONS.split(), dtype=float) / 1000, np.array(WAITING.split(), dtype=float)])
X = (rows - rows.mean(axis=0)) / rows.std(axis=0)
START = np.array([[-1.5, 1.0], [1.5, -1.0]])  # far from where they belong
RANGE = (-2.6, 2.6)


def panel(title, share, marks):
    """Draw the rows in the colours of the components that they belong to, by their share, and marks on them."""
    frame = Frame.around(RANGE, RANGE, width=250.0, height=250.0)
    drawn = []
    for k, colour in enumerate(COLOURS):
        for level in (0.2, 0.4, 0.6, 0.8, 1.0):
            some = X[np.abs(share[:, k] - level) <= 0.1]
            places = "".join(f"M{frame.x(a):.1f} {frame.y(b):.1f}h0" for a, b in some)
            if places:
                style = {"stroke": colour, "stroke_width": 3.5, "stroke_linecap": "round", "opacity": 0.7 * level}
                drawn.append(tag("path", d=places, fill="none", **style))
    return frame.draw(title, *drawn, *marks(frame), x_label="duration", y_label="waiting time")


def plural(steps):
    """Return a number of steps in words."""
    return f"{steps} step" + "s" * (steps > 1)


def cross(frame, point):
    """Draw a centre."""
    x, y = frame.x(point[0]), frame.y(point[1])
    return tag("path", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10", stroke="currentColor", stroke_width=2.2)


def ellipse(frame, mean, cov):
    """Draw where the density of a component has two standard deviations."""
    angle = np.linspace(0, 2 * np.pi, 60)
    line = mean + 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ np.linalg.cholesky(cov).T
    return frame.line(line[:, 0], line[:, 1], stroke="currentColor", stroke_width=1.6)


def quietly(model):
    """Fit a model that is not given enough steps, which it says in a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


# 1. k-means: assign, move the centres, assign again.
panels = []
for steps in (1, 2, 3):
    model = quietly(KMeans(2, init=START, max_iter=steps, tol=0.0))
    share = np.eye(2)[model.labels_]
    panels.append(panel(f"{plural(steps)}, inertia {model.inertia_:.1f}", share, lambda frame, model=model: [
        cross(frame, point) for point in model.cluster_centers_
    ]))  # fmt: skip
figures = {"kmeans_steps": side_by_side(*panels, title="k-means on Old Faithful")}


# 2. EM from the same centres: rows belong to both components, by their responsibilities.
def em_after(steps):
    """Return the mixture after some steps of EM."""
    given = {"means_init": START, "weights_init": [0.5, 0.5], "precisions_init": np.stack([np.eye(2)] * 2)}
    return quietly(GaussianMixture(2, **given, reg_covar=0.0, tol=0.0, max_iter=steps))


panels = []
for steps in (1, 5, 10, 30):
    model = em_after(steps)
    title = f"{plural(steps)}, log-likelihood {272 * model.lower_bound_:.1f}"
    panels.append(panel(title, model.predict_proba(X), lambda frame, model=model: [
        ellipse(frame, mean, cov) for mean, cov in zip(model.means_, model.covariances_, strict=True)
    ]))  # fmt: skip
figures["em_steps"] = side_by_side(*panels, title="EM on Old Faithful")

# 3. The fit in the units of the data, by EM and by gradient ascent; the density; how many components.
fit = GaussianMixture(2, tol=1e-10, max_iter=500, random_state=0).fit(rows)
print(f"log-likelihood of two components: {fit.score_samples(rows).sum():.3f}")
print(fit.certificate_)
print(verify(fit, rows))
climbed = MixtureModel("MultivariateNormal", 2, solver="lbfgs", tol=1e-9, max_iter=2000, random_state=0).fit(rows)
print(f"the same hill by L-BFGS: {climbed.score_samples(rows).sum():.3f} in {climbed.n_iter_} iterations")
bayes = VariationalGaussianMixture(6, weight_concentration_prior=1e-2, max_iter=2000, random_state=0).fit(rows)
print(f"a variational mixture of at most six: {np.sort(bayes.counts_)[::-1].round(1)} rows each")

xs, ys = np.linspace(1.2, 5.6, 89), np.linspace(38, 100, 89)
grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
density = np.exp(fit.score_samples(grid)).reshape(89, 89)
frame = Frame.around((1.2, 5.6), (38.0, 100.0), width=460.0, height=340.0)
places = "".join(f"M{frame.x(a):.1f} {frame.y(b):.1f}h0" for a, b in rows)
marks = [tag("path", d=places, fill="none", stroke=ACCENT, stroke_width=3.5, stroke_linecap="round", opacity=0.45)]
for share in (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8):
    for line in contour_lines(xs, ys, density, share * density.max()):
        marks.append(frame.line(line[:, 0], line[:, 1], stroke=MUTED, stroke_width=1.4))
marks.extend(cross(frame, mean) for mean in fit.means_)
figures["mixture_density"] = frame.draw(
    "Density of a mixture of two", *marks, x_label="duration (minutes)", y_label="minutes until the next eruption"
)


# 4. The bound F(q, θ) = log p(x | θ) − KL(q ‖ p(z | x, θ)): an E-step closes the gap, an M-step lifts the bound.
def log_joint(model):
    """Return log p(x, z) of every row and component."""
    parts = zip(model.weights_, model.means_, model.covariances_, strict=True)
    return np.stack([np.log(p) + MultivariateNormal(m, c).logpdf(X) for p, m, c in parts], axis=1)


models = [em_after(steps) for steps in range(1, 13)]
likelihood, bound = [], []
for before, after in pairwise(models):
    q = before.predict_proba(X)
    entropy = -np.sum(q * np.log(np.maximum(q, 1e-300)))
    for model in (before, after):  # the E-step at `before`; then the M-step, with the same q
        likelihood.append(float(np.logaddexp(*log_joint(model).T).sum()))
        bound.append(float(np.sum(q * log_joint(model)) + entropy))
half_steps = np.repeat(np.arange(1, 12), 2) + np.tile([0.0, 0.96], 11)
gap = np.array(likelihood) - np.array(bound)
print(f"the bound meets the log-likelihood after every E-step: largest gap {np.abs(gap[::2]).max():.1e}")
lines = {"log p(x | θ)": (half_steps, likelihood), "bound F(q, θ)": (half_steps, bound)}
figures["em_bound"] = side_by_side(
    labelled_lines(lines, title="Bound and log-likelihood", x_label="steps", y_label="log-likelihood"),
    labelled_lines(
        {"divergence": (half_steps, gap)}, title="Divergence", x_label="steps", y_label="KL(q ‖ p(z | x, θ))"
    ),
    title="What EM raises",
)

for name, figure in figures.items():
    print(f"{name}: {len(figure)} characters of SVG")
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
